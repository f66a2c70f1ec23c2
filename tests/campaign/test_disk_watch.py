"""Who is ended when disk space goes, without any instance: folders and processes of the test's own."""

import os
from types import SimpleNamespace

import pytest

from tare.campaign.instances import disk_watch
from tare.campaign.instances.disk_watch import DiskWatch
from tare.errors import SessionError
from tare.host.filesystems import volumes
from tare.host.filesystems.volumes import Room

MIB = 1 << 20
DISK = Room(1000 * MIB, 100_000)


class Disk:
    """A disk whose free space is told, with the folders of instances on the real one."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.others = folder, Room(0, 0)
        self.counts = 0
        self._taken = volumes.taken
        monkeypatch.setattr(volumes, "free", self.free)
        monkeypatch.setattr(volumes, "taken", self.taken)
        monkeypatch.setattr(disk_watch, "MIN_RESERVE", Room(100 * MIB, 1000))

    def free(self, place):
        place.stat()  # raises for a folder that is gone, as the real one
        return DISK - self.others - self._taken([self.folder])

    def taken(self, folders, pids):
        self.counts += 1
        return self._taken(folders, pids)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    return Disk(tmp_path, monkeypatch)


def _instance(watch, disk, name):
    """One in service: its folder, and its session, which takes down why it was condemned."""
    folder = disk.folder / name
    (folder / "data").mkdir(parents=True)
    killed = []
    group = SimpleNamespace(path=name, pids=list, kill=lambda: killed.append(name))
    session = SimpleNamespace(why=None)
    session.condemn = lambda error: setattr(session, "why", error)
    tenant = watch.add(SimpleNamespace(folder=folder, data=folder / "data"), group, None)
    watch.started(tenant, session)
    return SimpleNamespace(data=folder / "data", session=session, killed=killed)


def _write(instance, mib):
    with (instance.data / os.urandom(4).hex()).open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, mib * MIB)


def test_nobody_is_counted_while_nobody_can_be_beyond_its_limit(disk):
    watch = DiskWatch()
    _write(_instance(watch, disk, "one"), 300)
    watch.look()
    assert disk.counts == 0


def test_who_takes_too_much_is_ended_and_its_files_go(disk):
    watch = DiskWatch()
    greedy, modest = _instance(watch, disk, "greedy"), _instance(watch, disk, "modest")
    _write(modest, 50)
    _write(greedy, 650)
    watch.look()
    assert isinstance(greedy.session.why, SessionError)
    assert "took more of the host's disk than it may" in greedy.session.why.what
    assert greedy.killed == ["greedy"]
    assert not greedy.data.exists()
    assert watch.why_ended("greedy") is greedy.session.why
    assert modest.session.why is None
    assert modest.data.exists()


def test_when_the_reserve_is_touched_the_largest_ends(disk):
    watch = DiskWatch()
    larger, smaller = _instance(watch, disk, "larger"), _instance(watch, disk, "smaller")
    _write(larger, 500)
    _write(smaller, 420)
    watch.look()
    assert "nearly full" in larger.session.why.what
    assert smaller.session.why is None


def test_nobody_ends_for_what_others_have_taken(disk):
    watch = DiskWatch()
    instance = _instance(watch, disk, "one")
    _write(instance, 5)
    disk.others = Room(950 * MIB, 0)
    watch.look()
    assert disk.counts == 1
    assert instance.session.why is None


def test_nobody_that_starts_on_a_full_disk_ends_for_what_it_takes_to_run(disk):
    watch = DiskWatch()
    disk.others = DISK
    instance = _instance(watch, disk, "one")
    _write(instance, 5)
    watch.look()
    assert instance.session.why is None
    _write(instance, 100)
    watch.look()
    assert "took more of the host's disk than it may" in instance.session.why.what


def test_a_look_goes_on_after_the_first_instance_is_stopped(disk):
    watch = DiskWatch()
    first = _instance(watch, disk, "first")
    first.data.rmdir()
    (disk.folder / "first").rmdir()
    greedy = _instance(watch, disk, "greedy")
    _write(greedy, 650)
    watch.look()
    assert greedy.session.why is not None
