"""A platform that fails at any point never ends the campaign of the others; one that fails for good is left out."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from campaign.fakes import FakeLauncher, FakePlatform, Quiet, a_plan, a_record
from tare.campaign.execution import outages, run_campaign
from tare.campaign.execution.runner import Runner
from tare.campaign.host_session import HostSession
from tare.campaign.plan.campaign_plan import PROFILES
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.campaign.plan.stopping import LOOK_FROM
from tare.errors import HostError, PlatformError, UsageError
from tare.estimates.running import RunningEstimates
from tare.model import Arm, Design, Family
from tare.platforms.base import Availability
from tare.store import create_store, open_store, read_store

ERRORS = [
    PlatformError("AppArmor denies it", fix="see the host's log"),
    HostError("no such device"),
    UsageError("no such thing"),
    OSError(19, "No such device"),
    KeyError("IPAddress"),
]
HERE = Availability(True, version="0")
GONE = Availability(False, reason="the daemon does not answer", fix="start it")


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


# Before the first block


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """Runs a new campaign of three fakes to its end, but for the host; returns its record and the faults."""
    native, docker, runc = FakePlatform("native", baseline=True), FakePlatform("docker"), FakePlatform("runc")
    launcher = FakeLauncher()
    monkeypatch.setattr(run_campaign, "platforms_for", lambda names, families=(): [native, docker, runc])
    monkeypatch.setattr(run_campaign, "check_host", lambda request: None)
    monkeypatch.setattr(run_campaign, "keep_unremoved", lambda store: None)
    monkeypatch.setattr(HostSession, "__enter__", lambda self: self)
    monkeypatch.setattr(HostSession, "image", lambda self, workloads: SimpleNamespace())
    monkeypatch.setattr(
        HostSession, "prepare", lambda self, image, resources, subnet=None, prefix=None, client=None: (launcher, None)
    )
    monkeypatch.setattr("tare.campaign.execution.preflight._fairness", lambda *_: {})
    ran = []
    monkeypatch.setattr(run_campaign, "_run", lambda plan, *_: ran.extend(arm.platform for arm in plan.arms))
    monkeypatch.setattr(
        run_campaign,
        "record_of",
        lambda plan, ready, launcher, left_out, asked, tuned: a_record(plan).model_copy(
            update={"left_out": list(left_out)}
        ),
    )

    def run(names=("docker", "runc"), second=()):
        watcher = Quiet()
        request = CampaignRequest(platforms=names, workloads=("primes",), second=second)
        run_campaign.begin(request, tmp_path / "x.tare", watcher)
        with read_store(tmp_path / "x.tare") as store:
            return ran, store.record.left_out, watcher.faults

    return SimpleNamespace(run=run, docker=docker, runc=runc, native=native, launcher=launcher)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["detect", "prepare", "launch", "stop", "close"])
def test_a_platform_that_was_named_and_fails_is_left_out_and_the_others_run(begun, monkeypatch, where, error):
    start = begun.launcher.start

    def launch(platform, arm, **more):
        if platform is begun.docker and where == "launch":
            raise error
        running = start(platform, arm, **more)
        if platform is begun.docker and where == "stop":
            monkeypatch.setattr(running, "stop", raising(error))
        return running

    monkeypatch.setattr(begun.launcher, "start", launch)
    if where in {"detect", "prepare", "close"}:
        monkeypatch.setattr(begun.docker, where, raising(error))
    ran, left_out, faults = begun.run()
    if where == "close":
        assert set(ran) == {"native", "docker", "runc"}
        return
    assert set(ran) == {"native", "runc"}
    [entry] = left_out
    assert entry.platform == "docker"
    reason = error.what if hasattr(error, "what") else type(error).__name__
    assert reason in entry.reason
    assert [line for line in faults if line.startswith("docker is left out: ")], "the user who named it is told"


def test_one_that_does_not_run_here_is_left_out_though_it_was_named(begun, monkeypatch):
    monkeypatch.setattr(begun.docker, "detect", lambda: GONE)
    ran, [entry], faults = begun.run()
    assert set(ran) == {"native", "runc"}
    assert (entry.reason, entry.fix) == (GONE.reason, GONE.fix)
    assert faults == ["docker is left out: the daemon does not answer"]


def test_where_all_that_was_named_fails_the_first_says_why(begun, monkeypatch):
    monkeypatch.setattr(begun.docker, "detect", lambda: GONE)
    monkeypatch.setattr(begun.runc, "prepare", raising(PlatformError("no runc")))
    with pytest.raises(HostError, match="docker does not run here: the daemon does not answer; nor do runc") as ended:
        begun.run()
    assert ended.value.fix == "start it"


def test_a_second_baseline_beside_the_named_is_none_of_them(begun, monkeypatch, tmp_path):
    second = FakePlatform("native-veth")
    second.second_baseline = (Family.NETWORK,)
    everything = [begun.native, begun.docker, begun.runc, second]
    monkeypatch.setattr(run_campaign, "platforms_for", lambda names, families=(): everything)
    plans = []
    monkeypatch.setattr(run_campaign, "_run", lambda plan, *_: plans.append(plan))
    begun.run(second=("native-veth",))
    assert plans[0].only_in == {"native-veth": frozenset({Family.NETWORK})}
    assert plans[0].budget_s == PROFILES["quick"].budget(4), "it takes no time of its own"
    (tmp_path / "x.tare").unlink()
    for platform in (begun.docker, begun.runc):
        monkeypatch.setattr(platform, "detect", lambda: GONE)
    with pytest.raises(HostError, match="docker does not run here"):
        begun.run(second=("native-veth",))


@pytest.mark.parametrize("method", ["detect", "prepare"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_the_baseline_ends_it(begun, monkeypatch, method, error):
    monkeypatch.setattr(begun.native, method, raising(error))
    with pytest.raises((HostError, PlatformError, UsageError)):
        begun.run()


# In the middle of it


class Weather(FakeLauncher):
    """Docker does not start from its nth start on; a good detection may mend it."""

    def __init__(self, error, good=1, ends_after=10**6):
        super().__init__()
        self.error, self.good, self.bad, self.ends_after = error, good, 0, ends_after

    def start(self, platform, arm, **more):
        if arm.platform == "docker":
            self.good -= 1
            if self.good < 0 and self.bad < self.ends_after:
                self.bad += 1
                raise self.error(self.bad) if callable(self.error) else self.error
        return super().start(platform, arm, **more)


def ran(tmp_path, launcher, plan, watcher=None):
    watcher = watcher or Quiet()
    file = tmp_path / "x.tare"
    if not file.exists():
        create_store(file, a_record(plan)).close()
    with open_store(file) as store:
        Runner(plan, store, launcher, None, watcher).run()
        events = [event.text for event in store.events()]
        return list(store.trials().iter_rows(named=True)), events, watcher.faults


def of(rows, platform):
    return [row for row in rows if row["platform"] == platform]


@pytest.mark.parametrize("error", [*ERRORS[:1], *ERRORS[3:]], ids=lambda error: type(error).__name__)
def test_after_two_failures_alike_it_is_tried_anew_and_then_left_out_with_one_sentence(tmp_path, monkeypatch, error):
    plan = a_plan(4)
    docker = next(platform for platform in plan.platforms if platform.name == "docker")
    tries = []
    monkeypatch.setattr(docker, "detect", lambda: tries.append("detect") or GONE)
    rows, events, faults = ran(tmp_path, Weather(error), plan)
    assert {row["status"] for row in rows if row["platform"] != "docker"} == {"ok"}
    assert len(of(rows, "runc")) == 4 * 3
    assert tries == ["detect"]
    failed = [row for row in of(rows, "docker") if row["status"] == "failed"]
    assert {row["block"] for row in failed} == {1}, "no rows in the blocks after the one in which it was left out"
    sentence = "docker is left out from here on: it does not start any more: the daemon does not answer (fix: start it)"
    assert [event for event in events if "left out" in event] == [sentence]
    assert sentence in faults
    assert failed[-1]["reason"] == sentence


def test_a_daemon_that_is_back_goes_on(tmp_path, monkeypatch):
    plan = a_plan(3)
    docker = next(platform for platform in plan.platforms if platform.name == "docker")
    answers = [GONE, GONE, HERE]
    monkeypatch.setattr(docker, "detect", lambda: answers.pop(0))
    monkeypatch.setattr(outages, "RECOVERY_S", 60.0)
    monkeypatch.setattr(outages, "LOOK_S", 0.0)
    rows, events, faults = ran(tmp_path, Weather(PlatformError("no answer"), ends_after=2), plan)
    assert [row["status"] for row in of(rows, "docker")].count("failed") == 2
    assert len(of(rows, "docker")) == 3 * 3
    assert answers == []
    assert (events, faults) == ([], [])


def test_failures_of_other_kinds_and_single_ones_do_not_leave_it_out(tmp_path):
    different = [PlatformError("one"), PlatformError("two"), OSError(5, "three")] * 9
    rows, events, _ = ran(tmp_path, Weather(lambda nth: different[nth]), a_plan(3))
    assert len(of(rows, "docker")) == 3 * 3
    assert not [event for event in events if "left out" in event]


def test_one_that_is_detected_and_does_not_start_is_left_out_after_two_failed_trials_with_its_reason(tmp_path):
    bridgeless = PlatformError("could not find bridge docker0", fix="restart the Docker daemon")
    launcher = Weather(bridgeless)
    rows, events, faults = ran(tmp_path, launcher, a_plan(4))
    sentence = (
        "docker is left out from here on: it does not start any more: could not find bridge docker0 "
        "(fix: restart the Docker daemon)"
    )
    failed = [row["reason"] for row in of(rows, "docker") if row["status"] == "failed"]
    assert failed == [str(bridgeless)] * 2 + [sentence], "the third trial of the block is not tried"
    assert launcher.bad == 2 + 1
    assert (events, faults) == ([sentence], [sentence])


def test_what_is_started_when_it_is_tried_anew_is_ended_before_the_next_trial(tmp_path):
    launcher = Weather(PlatformError("no"), ends_after=2)
    rows, events, _ = ran(tmp_path, launcher, a_plan(3))
    assert [row["status"] for row in of(rows, "docker")].count("failed") == 2
    tried = launcher.log.index("start docker", launcher.log.index("stop docker"))  # after the first block
    assert launcher.log[tried : tried + 2] == ["start docker", "stop docker"]
    assert events == []
    assert (launcher.numbers, launcher.living) == (0, set())


def test_names_and_numbers_do_not_make_failures_differ(tmp_path):
    named = Weather(lambda nth: PlatformError(f"container tare-ab{nth}x{nth}: port {2000 + nth} is taken"))
    rows, events, _ = ran(tmp_path, named, a_plan(3))
    assert len(of(rows, "docker")) == 2 * 3
    assert len([event for event in events if "left out" in event]) == 1


def test_the_baseline_is_never_left_out(tmp_path):
    plan = a_plan(3)
    rows, events, _ = ran(tmp_path, FakeLauncher(refuse={"native", "native#1"}), plan)
    assert len(rows) == 3 * 3 * 4
    assert not [event for event in events if "left out" in event]


def test_it_ends_where_nothing_is_left_to_compare(tmp_path):
    plan = a_plan(5, others=("docker",))
    rows, events, _ = ran(tmp_path, Weather(PlatformError("no")), plan)
    assert {row["block"] for row in rows} == {0, 1}
    assert events[-1] == "ended after 2 blocks: no platform is left to be compared"


@pytest.mark.parametrize("after", range(1, 36, 5))
def test_one_that_was_left_out_and_interrupted_goes_on_with_what_was_planned(tmp_path, after):
    plan = a_plan(4)
    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path, Weather(PlatformError("no")), plan, Quiet(interrupt_after=after))
    rows, _, _ = ran(tmp_path, FakeLauncher(), plan)
    keys = [(row["block"], row["workload"], Arm(row["platform"], row["replica"])) for row in rows]
    assert len(keys) == len(set(keys))
    assert len(of(rows, "runc")) == 4 * 3
    assert len(of(rows, "native")) == 4 * 3 * 2


def test_one_after_the_other_its_pass_ends(tmp_path):
    plan = replace(a_plan(3), design=Design.SEQUENTIAL)
    rows, _, _ = ran(tmp_path, Weather(PlatformError("no")), plan)
    assert len(of(rows, "docker")) == 2 * 3
    assert len(of(rows, "runc")) == 3 * 3
    assert len(of(rows, "native")) == 3 * 3 * 2


def test_its_intervals_are_not_waited_for(tmp_path, monkeypatch):
    left_out = []
    original = RunningEstimates.known
    monkeypatch.setattr(
        RunningEstimates, "known", lambda self, without=(): left_out.append(tuple(without)) or original(self, without)
    )
    plan = replace(a_plan(LOOK_FROM + 2), targets={"alpha": 0.01, "beta": 0.01, "start": 0.01})
    ran(tmp_path, Weather(PlatformError("no")), plan)
    assert left_out
    assert set(left_out) == {("docker",)}
