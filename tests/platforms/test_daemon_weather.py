"""A daemon that is killed in the middle of a trial: rows that say so with the fix, the rest goes on, nothing stays."""

import contextlib
import gc
import json
import os
import secrets
import signal
import threading
import time
from pathlib import Path

import pytest

from campaign.fakes import Quiet, a_record
from platforms.dockerds import Dockerd
from tare import cli
from tare.campaign.execution.runner import Runner
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.plan.campaign_plan import CampaignPlan, WorkloadJob
from tare.contract.leftovers import left_on_host
from tare.host import processes, state
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal
from tare.host.resources.resource import HostResource
from tare.image import image_build
from tare.model import Direction, Family, Metric, Resources
from tare.platforms import platform_registry
from tare.platforms.docker import helps
from tare.store import create_store
from tare.workloads import workload_registry as workloads
from tare.workloads.base import Command, Outcome, RunPlan, RunWorkload, Side

KILLER = "kills-a-daemon"
ANSWERS_NOT = "the Docker daemon does not answer"
FIX = "(fix: start dockerd (apt-get install docker.io), or in a clone run by scripts/with-dockerd)"


#: Docker's SDK drops the socket by which it fails to reach a daemon. It is collected here, by `gc.collect`, or a later
#: test, of which it is not, would be told of it.
loses_sockets = pytest.mark.filterwarnings("ignore:unclosed <socket.socket .*family=1, type=1:ResourceWarning")


def _command_lines():
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            yield file.read_bytes()


class Killer(RunWorkload):
    """Beside its command in an instance, and before that ends, a daemon is killed, once."""

    name = KILLER
    title = "kills a daemon"
    family = Family.CPU
    metrics = (Metric("figure", "1", Direction.HIGHER, "figure"),)
    work_unit = "run"
    profiles = {"quick": {}, "full": {}}

    def __init__(self, find, is_victims):
        self.find = find  # the victim's process id, by the platform whose daemon it is
        self.victim = None
        self._is_victims = is_victims  # by the surroundings: whether an instance is of the daemon's
        self.killed = False

    def plan(self, params, around):
        beside = Command(("sh", "-c", "sleep 100 & echo here"))
        after = Command(("sh", "-c", "sleep 0.5; echo 42"), time_limit_s=10)
        if self.killed or not self._is_victims(around):
            return RunPlan((beside, after))
        self.killed = True
        mark = f"kill-{secrets.token_hex(8)}"
        threading.Thread(target=self._kill_once_it_runs, args=(mark,), daemon=True).start()
        return RunPlan((beside, Command(("sh", "-c", f"sleep 2; : {mark}"), side=Side.CLIENT), after))

    def _kill_once_it_runs(self, mark):
        """From outside: a client's commands see no process of the host's."""
        while not any(mark.encode() in line for line in _command_lines()):
            time.sleep(0.01)
        os.kill(self.victim, signal.SIGKILL)

    def parse(self, params, results):
        return Outcome({"figure": float(results[-1].stdout)}, work=1.0)


def _journaled(label):
    """Entries that name a campaign's things."""
    return [entry for entry in Journal(state.journal()).entries() if label in str(entry.resource)]


@pytest.fixture(scope="module")
def dockerd():
    folder = state.work() / f"dockerd{os.getpid()}"
    folder.mkdir()
    with CleanupStack(Journal(state.journal())) as cleanup, pytest.MonkeyPatch.context() as patch:
        cleanup.own(removers.folder(folder), removers.mount(folder / "data"))
        daemon = Dockerd(folder, cleanup)
        patch.setenv("DOCKER_HOST", daemon.host)
        yield daemon
        daemon.daemon.stop()
        for mount in daemon.mounts():
            processes.run(["umount", "-l", mount.split()[1]])


def _campaign(names, jobs, file):
    """Two blocks; returns the campaign's label, its trials, and what was told beside them."""
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    resources = Resources(default_cpus(), 512 << 20)
    platforms = tuple(platform_registry.choose(names))
    plan = CampaignPlan("quick", secrets.randbelow(1000), platforms, tuple(jobs), resources, 2, None)
    with contextlib.ExitStack() as last:
        for platform in platforms:
            last.callback(platform.close)
        launcher, client = last.enter_context(HostSession()).prepare(image, resources)
        store = last.enter_context(create_store(file, a_record(plan)))
        for platform in platforms:
            platform.prepare(image)
        for job in jobs:
            if isinstance(job.workload, Killer):
                job.workload.victim = job.workload.find(platforms[-1])
        Runner(plan, store, launcher, client, Quiet()).run()
        return launcher.campaign, store.trials()


@pytest.fixture(scope="module")
def outcome(dockerd, tmp_path_factory):
    primes = workloads.get("primes")
    killer = Killer(lambda _: dockerd.daemon.process.pid, lambda around: around.address is None)
    jobs = (WorkloadJob(killer, {}), WorkloadJob(primes, primes.profiles["quick"]))
    label, trials = _campaign(["native", "docker-none"], jobs, tmp_path_factory.mktemp("weather") / "dockerd.tare")
    dockerd.daemon.process.wait()
    gc.collect()
    return label, trials


def _rows(trials, platform):
    return list(trials.filter(trials["platform"] == platform).sort("seq").iter_rows(named=True))


@pytest.mark.host
@pytest.mark.own_host
@loses_sockets
def test_a_dockerd_that_is_killed_fails_its_trials_with_one_line_and_the_fix(outcome):
    rows = _rows(outcome[1], "docker-none")
    assert len(rows) == 4
    [at] = [row for row in rows if row["workload"] == KILLER and row["block"] == 0]
    assert at["status"] == "failed"
    assert at["reason"].startswith(f"{ANSWERS_NOT}: ")  # and how that came out
    after = [row for row in rows if row["seq"] > at["seq"]]
    assert len(after) >= 2
    for row in (at, *after):
        assert row["status"] == "failed"
        assert ANSWERS_NOT in row["reason"]
        assert row["reason"].endswith(FIX)
        assert "\n" not in row["reason"]


@pytest.mark.host
@pytest.mark.own_host
@loses_sockets
def test_the_others_go_on(outcome):
    rows = _rows(outcome[1], "native")
    assert len(rows) == 8
    assert {row["status"] for row in rows} == {"ok"}


@pytest.mark.host
@pytest.mark.own_host
@loses_sockets
def test_nothing_of_a_killed_dockerds_containers_stays_and_clean_copes(outcome, dockerd, monkeypatch, capsys):
    label = outcome[0]
    assert left_on_host(f"{label}x") == []
    assert dockerd.shims() == []
    assert dockerd.mounts() == []
    # What stays is the container in the daemon's records, which only the daemon can remove.
    [entry] = _journaled(label)
    assert entry.resource.kind == "container"
    _disown(entry)
    name = f"container {entry.resource.facts['name']} unix:"
    assert f"kept {name}" in (output := _clean(monkeypatch, capsys))
    assert f"{ANSWERS_NOT} (fix: start the dockerd that has it, then `tare clean`)" in output
    dockerd.start()
    listed = ["docker", "-H", dockerd.host, "ps", "-aq", "--filter", f"name={label}"]
    assert processes.run(listed).require().text.split()
    assert f"removed {name}" in _clean(monkeypatch, capsys)
    assert processes.run(listed).require().text == ""
    assert _journaled(label) == []
    gc.collect()


def _disown(entry):
    """As if the process that made the thing had ended."""
    data = json.loads(entry.file.read_text())
    data["owner"]["start_ticks"] += 1
    entry.file.write_text(json.dumps(data))


def _clean(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["tare", "clean"])
    with contextlib.suppress(SystemExit):
        cli.main()
    return " ".join(capsys.readouterr().out.split())


def test_a_record_that_is_gone_too_is_the_end_of_a_container(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    resource = removers.docker_container("tare-none")
    facts = removers.of_docker("c" * 64, tmp_path / "containers" / ("c" * 64), [str(tmp_path / "merged")])
    removers.remove(HostResource(resource.kind, {**resource.facts, **facts}))


def test_only_a_containers_own_shim_and_proxies_are_its_helpers():
    shim = ["/usr/bin/containerd-shim-runc-v2", "-namespace", "moby", "-id", "c1", "-address", "/run/x.sock", ""]
    proxy = "/usr/sbin/docker-proxy -proto tcp -host-ip 10.0.0.1 -host-port 20100 -container-ip 172.17.0.2 " \
        "-container-port 20100"  # fmt: skip
    assert helps(shim, "c1", 20100)
    assert not helps(shim, "c2", 20100)
    assert helps(proxy.split(), "c1", 20100)
    assert not helps(proxy.split(), "c1", 20101)
    assert not helps(["dockerd", "-id", "c1"], "c1", 20100)
    assert not helps([""], "c1", 20100)


def _has_its_own(around):
    """Whether an instance has an address of its own: native has the host's, and a plan made beforehand an example's."""
    address = around.address
    return address is not None and not address.startswith("192.0.2.") and not address.endswith(".1")


@pytest.mark.host
@pytest.mark.own_host
def test_a_libvirtd_that_is_killed_in_the_middle_of_a_trial(tmp_path):
    killer = Killer(lambda platform: platform._running_daemon().pid, _has_its_own)
    jobs = (WorkloadJob(workloads.get("startup"), {}), WorkloadJob(killer, {}))
    label, trials = _campaign(["native", "libvirt-lxc"], jobs, tmp_path / "libvirtd.tare")
    assert {row["status"] for row in _rows(trials, "native")} == {"ok"}
    rows = {(row["block"], row["workload"]): row for row in _rows(trials, "libvirt-lxc")}
    assert rows[0, KILLER]["status"] == "ok", rows[0, KILLER]["reason"]  # a domain outlives its daemon
    assert rows[1, "startup"]["status"] == "failed"
    assert rows[1, "startup"]["reason"].startswith("libvirtd was ended by signal 9 in the middle of its work (fix: ")
    assert rows[1, KILLER]["status"] == "ok", rows[1, KILLER]["reason"]  # by a new daemon
    assert left_on_host(f"{label}x") == []
    assert _journaled(label) == []


@pytest.mark.host
@pytest.mark.own_host
def test_an_lxd_that_is_killed_in_the_middle_of_a_trial(tmp_path):
    killer = Killer(lambda platform: platform._held._daemon.process.pid, _has_its_own)
    label, trials = _campaign(["native", "lxd"], (WorkloadJob(killer, {}),), tmp_path / "lxd.tare")
    assert {row["status"] for row in _rows(trials, "native")} == {"ok"}
    during, after = _rows(trials, "lxd")
    assert during["status"] == "failed"
    assert during["reason"].startswith("LXD's daemon was ended by signal 9: ")
    assert "(fix: the next start has a new one" in during["reason"]
    assert after["status"] == "ok", after["reason"]
    assert left_on_host(f"{label}x") == []
    assert _journaled(label) == []
