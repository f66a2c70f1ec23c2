"""Guests that fill all they can: the host keeps its reserve, the trial says why it failed, all others are well."""

import os
import secrets
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.fakes import Quiet, a_record
from tare.campaign.execution.runner import Runner
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.plan.campaign_plan import CampaignPlan, WorkloadJob
from tare.contract.leftovers import left_on_host
from tare.host import processes, state
from tare.host.filesystems import volumes
from tare.host.filesystems.volumes import Room
from tare.host.resources import unremoved
from tare.image import image_build
from tare.model import Direction, Family, Metric, Resources
from tare.platforms import platform_registry
from tare.store import create_store
from tare.workloads.base import Command, Outcome, RunPlan, RunWorkload
from tare.workloads.output import text_of

pytestmark = [pytest.mark.host, pytest.mark.own_host]

MIB = 1 << 20
DISK = 5 << 30
#: Files that it has room for: mkfs gives it 327,680, which a guest takes a minute to make.
FILES = 98_304
#: A filesystem of an instance's own: a quarter of the least that `--data-size` takes, as these fill all of it.
VOLUME = volumes.MIN_VOLUME // 4
#: What is left of it whatever a guest does: the reserve, less what is written between two looks.
RESERVE = Room(512 * MIB, 1_000)
#: Room for the journal and for small files that stay.
MEANWHILE = 16 * MIB
TOO_MUCH = "the instance took more of the host's disk than it may: "


class Shell(RunWorkload):
    """Runs one shell command, and takes its standard output for the figure."""

    title = "a shell command"
    family = Family.STORAGE
    metrics = (Metric("figure", "1", Direction.HIGHER, "figure"),)
    work_unit = "run"
    profiles = {"quick": {}, "full": {}}

    def __init__(self, name, script, time_limit_s=100):
        self.name = name
        self._command = Command(("sh", "-c", script), time_limit_s=time_limit_s)

    def plan(self, params, around):
        return RunPlan((self._command,))

    def parse(self, params, results):
        return Outcome({"figure": float(text_of(results[0]))}, work=1.0)


MANY_FILES = "n=0; while n=$((n+1)); touch $(seq -f $n.%.0f 5000); do :; done; exit 1"
WELL = Shell("well", "echo 42")
#: Most of what an instance may take, 60 % of the disk, is set aside at once, which writes nothing; the rest is written.
FILLS = {
    "data": "fallocate -l 2700M /data/held && cat /dev/zero >/data/fill; sleep 100",
    "root": "mkdir -p /var/fill && fallocate -l 2700M /var/fill/held && cat /dev/zero >/var/fill/fill; sleep 100",
    "at-once": "fallocate -l 3G /data/fill; sleep 100",
    "without-a-name": "exec 3>/data/fill; rm /data/fill; cat /dev/zero >&3; sleep 100",
    "files": "i=0; while :; do i=$((i+1)); mkdir /data/$i && cd /data/$i && touch $(seq 1000); done",
}


class LowestFree:
    """Watches how low the free space of a disk falls."""

    def __init__(self, place):
        self._place = place

    def __enter__(self):
        self._end = threading.Event()
        self.began = self.lowest = volumes.free(self._place)
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self):
        while not self._end.wait(0.01):
            self.lowest = volumes.least([self.lowest, volumes.free(self._place)])

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()
        processes.run(["sync", "--file-system", str(self._place)]).require()
        # Freed space counts once the deletion is written, but beside a busy disk up to 40 ms after `sync` returned.
        limit = time.monotonic() + 10
        while (ended := volumes.free(self._place)).bytes <= self.began.bytes - MEANWHILE and time.monotonic() < limit:
            time.sleep(0.01)
        self.ended = ended


@pytest.fixture(params=[DISK])
def disk(tmp_path, request):
    """A disk of some GiB on which instances have their folders: the host's own is never filled."""
    file, place = tmp_path / "disk.ext4", state.work() / f"disk-{secrets.token_hex(3)}"
    place.mkdir()
    file.touch()
    os.truncate(file, request.param)
    processes.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-N", str(FILES), str(file)]).require()
    processes.run(["mount", "-o", "loop", str(file), str(place)]).require()
    yield place
    processes.run(["umount", str(place)]).require()
    place.rmdir()
    file.unlink()


def _campaign(names, jobs, disk, data_bytes=None):
    """One block; returns the trials, and how the disk was meanwhile."""
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    platforms = tuple(platform_registry.choose(names))
    resources = Resources(default_cpus(), 512 * MIB, data_bytes)
    earlier = unremoved.noted()
    plan = CampaignPlan(
        "quick", secrets.randbelow(1000), platforms, tuple(WorkloadJob(job, {}) for job in jobs), resources, 1, None
    )
    for platform in platforms:
        platform.prepare(image)
    with (
        HostSession() as host,
        tempfile.TemporaryDirectory() as folder,
        create_store(Path(folder, "disk.tare"), a_record(plan)) as store,
        LowestFree(disk) as meanwhile,
    ):
        launcher, client = host.prepare(image, resources)
        Runner(plan, store, replace(launcher, work=disk), client, Quiet()).run()
        rows = list(store.trials().iter_rows(named=True))
        assert launcher.disk.failed is None
    for platform in platforms:
        platform.close()
    assert unremoved.noted() == earlier, "each was removed at the first try"
    assert left_on_host(f"{launcher.campaign}x") == []
    for row in rows:
        print(row["workload"], row["platform"], row["status"], row["reason"], f"{row['wall_ns'] / 1e9:.1f} s")
    print("free before, at the lowest, after:", meanwhile.began, meanwhile.lowest, meanwhile.ended, sep="; ")
    return rows, meanwhile


def test_a_file_waits_for_a_disk_that_is_full_for_a_moment(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    processes.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]).require()
    plan = CampaignPlan(
        "quick", 1, tuple(platform_registry.choose(["native"])), (WorkloadJob(WELL, {}),), Resources((0,), MIB), 1, None
    )
    with create_store(place / "full.tare", a_record(plan)) as store:
        processes.run(["dd", "if=/dev/zero", f"of={place}/filler", "bs=4k"])
        freed = threading.Timer(1.0, (place / "filler").unlink)
        freed.start()
        store.add_attachment("noise", os.urandom(500_000))
        freed.join()
    processes.run(["umount", str(place)]).require()


@pytest.mark.parametrize(
    "way",
    ["data", *(pytest.param(way, marks=pytest.mark.slow) for way in FILLS if way not in {"data", "files"}), "files"],
)
def test_a_guest_that_fills_the_disk_is_ended_and_the_rest_is_well(disk, way):
    rows, meanwhile = _campaign(["native", "runc"], [Shell("fills", FILLS[way]), WELL], disk)
    filled = [row for row in rows if row["workload"] == "fills"]
    assert len(filled) == 3
    for row in filled:
        assert row["status"] == "failed"
        assert TOO_MUCH in row["reason"], row["reason"]
        assert "\n" not in row["reason"]
    assert [row["status"] for row in rows if row["workload"] == "well"] == ["ok"] * 3
    if way != "at-once":  # no look can come before one system call ends: `--data-size` can
        assert not RESERVE.beyond(meanwhile.lowest)
    assert meanwhile.ended.bytes > meanwhile.began.bytes - MEANWHILE, "the space was given back"


#: What a guest with disks of its own can fill is what its disks take of the host's: its root, then its data.
MACHINE = "cat /dev/zero >/fill; cat /dev/zero >/data/fill; sleep 100"


@pytest.mark.parametrize(
    ("name", "script"),
    [
        pytest.param("gvisor", FILLS["data"], marks=pytest.mark.slow, id="gvisor-data"),
        pytest.param("gvisor", FILLS["root"], id="gvisor-root"),
        pytest.param("qemu-tcg", MACHINE, marks=pytest.mark.slow, id="qemu-tcg"),
    ],
)
def test_also_behind_another_kernel(disk, name, script):
    rows, meanwhile = _campaign(["native", name], [Shell("fills", script), WELL], disk)
    [row] = [row for row in rows if row["workload"] == "fills" and row["platform"] == name]
    assert row["status"] == "failed"
    assert TOO_MUCH in row["reason"], row["reason"]
    assert [row["status"] for row in rows if row["workload"] == "well"] == ["ok"] * 3
    assert not RESERVE.beyond(meanwhile.lowest)
    assert meanwhile.ended.bytes > meanwhile.began.bytes - MEANWHILE


def test_what_docker_keeps_of_a_root_counts_too(disk, monkeypatch):
    monkeypatch.setattr(volumes, "MAX_BYTES", 1 << 30)  # Docker's storage is on the host's own disk
    script = "mkdir -p /var/fill; fallocate -l 900M /var/fill/held; head -c 4G /dev/zero >/var/fill/fill; sleep 20"
    rows, _ = _campaign(["native", "docker"], [Shell("fills", script), WELL], disk)
    reasons = {row["platform"]: row["reason"] for row in rows if row["workload"] == "fills"}
    assert TOO_MUCH in reasons["docker"]
    assert TOO_MUCH in reasons["native"]
    assert [row["status"] for row in rows if row["workload"] == "well"] == ["ok"] * 3


@pytest.mark.parametrize("disk", [8 * VOLUME], indirect=True)
@pytest.mark.parametrize(
    ("name", "script"),
    [
        pytest.param("runc", "cat /dev/zero >/data/fill", id="runc-bytes"),
        pytest.param("gvisor", "cat /dev/zero >/data/fill", marks=pytest.mark.slow, id="gvisor-bytes"),
        pytest.param("gvisor", MANY_FILES, id="gvisor-files"),
        pytest.param("runc", MANY_FILES, marks=pytest.mark.slow, id="runc-files"),
    ],
)
def test_a_filesystem_of_its_own_cannot_be_outgrown(disk, name, script):
    rows, meanwhile = _in_volumes(disk, name, script)
    for row in rows:
        if row["workload"] == "fills":
            assert row["reason"].startswith("its data volume was full: "), row["reason"]
    assert meanwhile.ended.bytes > meanwhile.began.bytes - MEANWHILE


@pytest.mark.parametrize("disk", [8 * VOLUME], indirect=True)
@pytest.mark.parametrize("name", ["runc", "gvisor"])
def test_what_would_outgrow_it_at_once_takes_nothing(disk, name):
    rows, meanwhile = _in_volumes(disk, name, "fallocate -l 3G /data/fill")
    for row in rows:
        if row["workload"] == "fills":
            assert "No space left on device" in row["reason"], row["reason"]
    assert meanwhile.lowest.bytes > meanwhile.began.bytes - VOLUME


def _in_volumes(disk, name, script):
    """A campaign whose instances have filesystems of their own."""
    rows, meanwhile = _campaign(["native", name], [Shell("fills", script), WELL], disk, data_bytes=VOLUME)
    assert [row["status"] for row in rows if row["workload"] == "fills"] == ["failed"] * 3
    assert [row["status"] for row in rows if row["workload"] == "well"] == ["ok"] * 3
    assert processes.run(["losetup", "--list", "--noheadings", "--output", "BACK-FILE"]).text.count(str(disk)) == 0
    return rows, meanwhile
