"""Sandboxes that hang, die or flood: the trial fails within its limit with a reason, and the campaign goes on."""

import secrets
import threading
import time

import pytest

from campaign.fakes import Quiet, a_record
from tare.campaign.execution.runner import Runner
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances import launcher as instances
from tare.campaign.plan.campaign_plan import CampaignPlan, WorkloadJob
from tare.errors import HostError, TareError
from tare.host import cgroup, processes, state
from tare.host.resources.journal import Journal
from tare.image import image_build
from tare.model import Arm, Direction, Family, Metric, Resources
from tare.platforms import platform_registry
from tare.platforms.base import LaunchSpec
from tare.store import create_store
from tare.workloads.base import Command, Outcome, RunPlan, RunWorkload
from tare.workloads.output import text_of

pytestmark = [pytest.mark.host, pytest.mark.own_host]


class Odd(RunWorkload):
    """Runs one shell command, and takes its standard output for the figure."""

    title = "an odd one"
    family = Family.CPU
    metrics = (Metric("figure", "1", Direction.HIGHER, "figure"),)
    work_unit = "run"
    profiles = {"quick": {}, "full": {}}

    def __init__(self, name, script, **options):
        self.name = name
        self._command = Command(("sh", "-c", script), **options)

    def plan(self, params, around):
        return RunPlan((self._command,))

    def parse(self, params, results):
        return Outcome({"figure": float(text_of(results[0]))}, work=1.0)


class TooBig(Odd):
    def plan(self, params, around):
        raise HostError("it needs more than this host has")


ODD = (
    Odd("well", "echo 42"),
    Odd("hangs", "sleep 1000", time_limit_s=0.5),
    Odd("floods", "yes", time_limit_s=0.5),
    Odd("fails", "echo oh >&2; exit 3"),
    Odd("kills-the-agent", "kill -9 $PPID", time_limit_s=5.0),
    TooBig("too-big", "true"),
)
#: Longest time that a trial of these may take, with the start of a fresh instance.
LIMIT_S = 15.0


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """One block over real platforms; returns trials by workload and what is left on the host."""
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    platforms = tuple(platform for platform in platform_registry.choose(["native", "runc", "docker", "gvisor"]))
    resources = Resources(default_cpus(), 512 << 20)
    plan = CampaignPlan(
        "quick", secrets.randbelow(1000), platforms, tuple(WorkloadJob(odd, {}) for odd in ODD), resources, 2, None
    )
    file = tmp_path_factory.mktemp("weather") / "odd.tare"
    with (
        HostSession() as host,
        create_store(file, a_record(plan)) as store,
    ):
        for platform in platforms:
            platform.prepare(image)
        launcher, client = host.prepare(image, resources)
        Runner(plan, store, launcher, client, Quiet()).run()
        trials = store.trials()
    for platform in platforms:
        platform.close()
    return trials


def _of(trials, workload):
    return trials.filter(trials["workload"] == workload)


def test_every_trial_is_a_row(outcome):
    assert outcome.height == 2 * 5 * len(ODD)


@pytest.mark.parametrize(
    ("workload", "status", "reason"),
    [
        ("hangs", "failed", "time limit"),
        ("floods", "failed", "time limit"),
        ("fails", "failed", "ended with 3: oh"),
        ("kills-the-agent", "failed", ""),
        ("too-big", "unsupported", "more than this host has"),
    ],
)
def test_it_fails_within_its_limit_with_a_reason(outcome, workload, status, reason):
    rows = _of(outcome, workload)
    assert set(rows["status"]) == {status}
    assert all(why and reason in why for why in rows["reason"]), list(rows["reason"])
    assert rows["wall_ns"].max() / 1e9 < LIMIT_S


def test_the_others_are_not_disturbed(outcome):
    assert set(_of(outcome, "well")["status"]) == {"ok"}


def test_nothing_is_left(outcome):
    assert Journal(state.journal()).entries() == []
    assert not [root for root in cgroup.hierarchies().mounted if (root / instances.PARENT_GROUP).exists()]
    assert not list(state.work().iterdir())
    assert processes.run(["docker", "ps", "-aq", "--filter", "label=tare"]).text == ""


def test_a_silent_sandbox_is_given_up(outcome, monkeypatch):
    """An agent that never speaks: `sleep` in its place."""
    monkeypatch.setattr(LaunchSpec, "agent_argv", lambda self, *_: ["/bin/sleep", "1000"])
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    resources = Resources(default_cpus(), 512 << 20)
    with HostSession() as host:
        launcher, _ = host.prepare(image, resources)
        for name in ("native", "runc", "docker", "gvisor"):
            platform = platform_registry.choose([name])[0]
            began, threads = time.monotonic(), threading.active_count()
            with pytest.raises(TareError):
                launcher.start(platform, Arm(name), measured=True, terms=instances.StartOptions(start_limit_s=1.0))
            assert time.monotonic() - began < LIMIT_S
            assert threading.active_count() == threads, "somebody still watches or pings what was given up"
            platform.close()
            assert not [path for path in state.work().iterdir() if "client" not in path.name]
