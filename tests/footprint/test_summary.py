"""The table that the command prints, held to a few footprints that can be added up by hand."""

import pytest

from tare.footprint.model import EMPTY, IDLE, Footprint, Level, Phase, Scope
from tare.footprint.summary import rows, workloads


def _one(platform, workload, hits, *, scope=Scope.INSTANCE, repeat=0, seconds=2.0, lost=0):
    phase = Phase.START if workload is None and platform != IDLE else Phase.STEADY
    return Footprint(
        level=Level.SYSCALLS, scope=scope, platform=platform, phase=phase, workload=workload, repeat=repeat,
        seconds=seconds, hits=hits, lost=lost,
    )  # fmt: skip


FOUND = [
    _one("native", None, {"execve": 1, "mmap": 4}),
    _one("native", "cpu", {"read": 6, "write": 2}),
    _one("native", "cpu", {"read": 4, "futex": 2}, repeat=1, seconds=3.0),
    _one("native", "cpu", {"read": 60}, scope=Scope.HOST, lost=3),
    _one("native", "disk", {"fsync": 9}),
    _one("gvisor", None, {"execve": 1, "ptrace": 4}),
    _one("gvisor", "cpu", {"futex": 10}),
    _one("xen", None, {"ioctl": 5}, scope=Scope.HOST),
    _one("xen", "cpu", {"ioctl": 5}, scope=Scope.HOST),
    _one(IDLE, None, {"read": 20}, scope=Scope.HOST, seconds=10.0),
]


def test_repeats_are_one_longer_run():
    native = rows(FOUND, "cpu")[0]
    assert native.steady.names == {"read", "write", "futex"}
    assert native.steady.rate == pytest.approx(14 / 5)
    assert native.everybody.rate == pytest.approx(30)
    assert native.everybody.lost == 3
    assert native.start.names == {"execve", "mmap"}


def test_what_only_one_platform_does_is_of_its_start_and_of_this_workload():
    native, gvisor, xen, idle = rows(FOUND, "cpu")
    assert native.only == ("mmap", "read", "write")
    assert gvisor.only == ("ptrace",)
    assert xen.only == ()  # nobody knows which of everybody's calls are its own
    assert xen.start is None
    assert xen.everybody.hits == 5
    assert idle.platform == IDLE
    assert idle.everybody.rate == pytest.approx(2)


def test_a_workload_has_its_own_table_and_without_one_there_is_the_start():
    assert workloads(FOUND) == ["cpu", "disk"]
    assert [row.steady.names for row in rows(FOUND, "disk") if row.steady] == [{"fsync"}]
    assert all(row.steady is None for row in rows(FOUND, None))
    assert rows([one for one in FOUND if one.platform != IDLE], "cpu")[-1].platform == "xen"


def test_what_a_reading_leaves_is_a_row_beside_the_idle_host_and_no_platform():
    empty = _one(EMPTY, None, {"openat": 3, "read": 4}, scope=Scope.HOST)
    *_, idle, last = rows([empty, *FOUND], "cpu")
    assert [idle.platform, last.platform] == [IDLE, EMPTY]
    assert (last.start, last.steady, last.only) == (None, None, ())
    assert last.everybody.hits == 7
