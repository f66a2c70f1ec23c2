"""A real dockerd that is restarted, that goes for good, or whose bridge or disk does, in the middle of a campaign."""

import contextlib
import os
import secrets
import threading
import time

import pytest

from campaign.fakes import Quiet, a_record
from campaign.test_host_disks import Shell
from platforms.dockerds import Dockerd
from platforms.test_daemon_weather import loses_sockets
from tare.campaign.execution import outages
from tare.campaign.execution.preflight import try_each
from tare.campaign.execution.runner import Runner
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.plan.campaign_plan import CampaignPlan, WorkloadJob
from tare.host import processes, state
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal, of_this_process
from tare.image import image_build
from tare.model import Resources
from tare.platforms import platform_registry
from tare.store import create_store

pytestmark = [pytest.mark.host, pytest.mark.own_host, loses_sockets]


#: In no network that `tare.host.network.bridge` takes for its own.
BRIDGE, ON_BRIDGE = "taretest0", "192.0.2.1/24"


@contextlib.contextmanager
def _dockerd(bridge=None):
    folder = state.work() / f"dockerd{secrets.token_hex(3)}"
    folder.mkdir()
    with CleanupStack(Journal(state.journal())) as cleanup:
        cleanup.own(removers.folder(folder), removers.mount(folder / "data"))
        daemon = Dockerd(folder, cleanup, bridge=bridge)
        yield daemon
        daemon.daemon.stop()
        for mount in daemon.mounts():
            processes.run(["umount", "-l", mount.split()[1]])


@pytest.fixture(scope="module")
def own_dockerd():
    """One daemon, which is stopped and started by the tests: to import the image anew takes it ten seconds."""
    with _dockerd() as daemon:
        yield daemon


@pytest.fixture
def dockerd(own_dockerd, monkeypatch):
    if own_dockerd.daemon.process.poll() is not None:
        own_dockerd.start()
    monkeypatch.setenv("DOCKER_HOST", own_dockerd.host)
    yield own_dockerd
    for entry in Journal(state.journal()).entries():  # what could not go without it goes with it: it runs again
        if entry.resource.facts.get("host") == own_dockerd.host:
            removers.remove(entry.resource)
            entry.file.unlink()


@pytest.fixture
def with_bridge(monkeypatch):
    """A daemon whose containers are on a bridge that stands for docker0."""
    with CleanupStack(Journal(state.journal())) as cleanup:
        cleanup.own(removers.link(BRIDGE))
        for words in (f"link add {BRIDGE} type bridge", f"addr add {ON_BRIDGE} dev {BRIDGE}", f"link set {BRIDGE} up"):
            processes.run(["ip", *words.split()]).require()
        with _dockerd(BRIDGE) as daemon:
            monkeypatch.setenv("DOCKER_HOST", daemon.host)
            yield daemon


class Strikes(Shell):
    """Strikes in the first trial of the block that it is told."""

    def __init__(self, strike, nth):
        super().__init__("strikes", "echo 42")
        self._strike, self._left = strike, nth

    def plan(self, params, around):
        self._left -= 1
        if self._left == 0:
            self._strike()
        return super().plan(params, around)


def _campaign(tmp_path, strike, blocks, name="docker-none"):
    """Two workloads a block on native, runc-none and one of Docker's; the last's rows, the events, the faults."""
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    resources = Resources(default_cpus(), 512 << 20)
    platforms = tuple(platform_registry.choose(["native", name, "runc-none"]))
    jobs = (WorkloadJob(Strikes(strike, nth=5), {}), WorkloadJob(Shell("after", "echo 42"), {}))
    plan = CampaignPlan("quick", 3, platforms, jobs, resources, blocks, None)
    watcher = Quiet()
    with HostSession() as host:
        for platform in platforms:
            platform.prepare(image)
        launcher, client = host.prepare(image, resources)
        with create_store(tmp_path / "x.tare", a_record(plan)) as store:
            Runner(plan, store, launcher, client, watcher).run()
            rows, events = list(store.trials().iter_rows(named=True)), [event.text for event in store.events()]
    for platform in platforms:
        platform.close()
    assert {row["status"] for row in rows if row["platform"] != name} == {"ok"}
    assert sum(row["platform"] != name for row in rows) == blocks * 2 * 3
    return [row for row in rows if row["platform"] == name], events, watcher.faults


def test_one_that_is_restarted_costs_failed_rows_and_then_goes_on(dockerd, tmp_path):
    back = threading.Timer(4.0, dockerd.start)

    def strike():
        os.kill(dockerd.daemon.process.pid, 9)
        dockerd.daemon.process.wait()
        back.start()

    rows, events, faults = _campaign(tmp_path, strike, blocks=4)
    back.join()
    assert len(rows) == 4 * 2, "none is left out"
    assert [row["status"] for row in rows][-2:] == ["ok"] * 2, "from the second start after it on"
    failed = [row["reason"] for row in rows if row["status"] == "failed"]
    assert failed
    assert all("the Docker daemon does not answer" in reason for reason in failed)
    assert not [text for text in (*events, *faults) if "left out" in text]


def test_one_that_is_gone_for_good_is_left_out_with_one_sentence(dockerd, tmp_path, monkeypatch):
    monkeypatch.setattr(outages, "RECOVERY_S", 2.0)
    rows, events, faults = _campaign(tmp_path, dockerd.daemon.stop, blocks=5)
    sentence = "docker-none is left out from here on: it does not start any more: the Docker daemon does not answer"
    [event] = [text for text in events if "left out" in text]
    assert event.startswith(sentence)
    assert "(fix: start dockerd" in event
    assert faults == [event]
    assert len(rows) < 5 * 2
    assert max(row["block"] for row in rows) <= 2
    dockerd.start()


def test_one_whose_bridge_has_gone_is_left_out_after_two_starts_though_its_daemon_answers(
    with_bridge, tmp_path, monkeypatch
):
    monkeypatch.setattr(outages, "RECOVERY_S", 2.0)

    def strike():
        processes.run(["ip", "link", "del", BRIDGE]).require()

    rows, events, faults = _campaign(tmp_path, strike, blocks=5, name="docker")
    [event] = [text for text in events if "left out" in text]
    assert event.startswith("docker is left out from here on: it does not start any more: the Docker daemon refuses: ")
    assert f"could not find bridge {BRIDGE}" in event
    assert event.endswith("(fix: restart the Docker daemon, which makes its bridge again)")
    assert faults == [event]
    # The first start of its block is no trial yet; the second one's is the first row, and a third is not tried.
    first, second = [row["reason"] for row in rows if row["status"] == "failed"]
    assert f"could not find bridge {BRIDGE}" in first
    assert second == event


def test_one_whose_disk_is_full_in_mid_campaign_is_left_out_with_the_fix_and_leaves_nothing(
    dockerd, tmp_path, monkeypatch
):
    monkeypatch.setattr(outages, "RECOVERY_S", 2.0)
    dockerd.daemon.stop()
    data = dockerd.folder / "data"
    processes.run(["mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", str(data)]).require()
    filler = data / "filler"

    def strike():
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as writing:
            while writing.write(bytes(1 << 20)):
                pass

    try:
        dockerd.start()
        rows, events, faults = _campaign(tmp_path, strike, blocks=5)
        [event] = [text for text in events if "left out" in text]
        assert event.startswith("docker-none is left out from here on: it does not start any more: ")
        assert "no space left on device" in event
        assert event.endswith("(fix: free disk space where Docker keeps its data (docker info: Docker Root Dir))")
        assert faults == [event]
        assert len(rows) < 5 * 2
        assert [entry for entry in of_this_process() if entry.resource.kind == "container"] == [], "all are removed"
    finally:
        dockerd.daemon.stop()
        processes.run(["umount", "-l", str(data)])
        dockerd.start()


def test_one_whose_disk_is_full_is_left_out_with_the_fix_and_the_others_are_ready(dockerd):
    dockerd.daemon.stop()
    data = dockerd.folder / "data"
    processes.run(["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", str(data)]).require()
    try:
        dockerd.start()
        image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
        with HostSession() as host:
            launcher, _ = host.prepare(image, Resources(default_cpus(), 512 << 20))
            chosen = platform_registry.choose(["native", "docker-none"])
            detected = [(platform, platform.detect()) for platform in chosen]
            began = time.monotonic()
            ready, [left_out] = try_each(
                detected, image, launcher, progress=lambda _: None, keep=lambda *_: pytest.fail("no fault")
            )
        assert [entry.platform.name for entry in ready] == ["native"]
        assert left_out.platform == "docker-none"
        assert "no space left on device" in left_out.reason
        assert "\n" not in left_out.reason
        assert left_out.fix == "free disk space where Docker keeps its data (docker info: Docker Root Dir)"
        assert time.monotonic() - began < 60
        for platform in chosen:
            platform.close()
    finally:
        dockerd.daemon.stop()
        processes.run(["umount", "-l", str(data)])
        dockerd.start()
