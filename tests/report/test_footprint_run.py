"""The table that the command prints, held to a few footprints that can be added up by hand."""

import pytest
from rich.console import Console, Group

from tare.features.kernel.analysis.footprint_sets import Exposure
from tare.features.kernel.footprint_report.run_tables import render, rows
from tare.footprint_model import EMPTY, IDLE, Footprint, Phase, Scope
from tare.model import Level


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
    native = rows(Exposure(FOUND), "cpu")[0]
    assert set(native.steady.hits) == {"read", "write", "futex"}
    assert native.steady.whole_rate == pytest.approx(14 / 5)
    assert native.everybody.whole_rate == pytest.approx(30)
    assert native.everybody.lost == 3
    assert set(native.start.hits) == {"execve", "mmap"}


def test_what_only_one_platform_does_is_of_its_start_and_of_this_workload():
    native, gvisor, xen, idle = rows(Exposure(FOUND), "cpu")
    assert native.only == ("mmap", "read", "write")
    assert gvisor.only == ("ptrace",)
    assert xen.only == ()  # nobody knows which of everybody's calls are its own
    assert xen.start is None
    assert xen.everybody.hits == {"ioctl": 5}
    assert idle.platform == IDLE
    assert idle.everybody.whole_rate == pytest.approx(2)


def test_a_workload_has_its_own_table_and_without_one_there_is_the_start():
    assert [set(row.steady.hits) for row in rows(Exposure(FOUND), "disk") if row.steady] == [{"fsync"}]
    starts = Exposure(footprint for footprint in FOUND if footprint.phase is Phase.START)
    assert [(row.platform, row.steady) for row in rows(starts, None)] == [
        (name, None) for name in ("native", "gvisor", "xen")
    ]
    assert rows(Exposure(footprint for footprint in FOUND if footprint.platform != IDLE), "cpu")[-1].platform == "xen"


def text(footprints):
    console = Console(width=160, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(Group(*render(footprints)))
    return captured.get()


def test_a_table_a_workload_with_what_only_one_does_and_what_readings_leave():
    empty = _one(EMPTY, None, {"openat": 3, "read": 4}, scope=Scope.HOST)
    shown = [line.split() for line in text([*FOUND, empty]).splitlines()]
    assert [line for line in shown if len(line) == 1] == [["cpu"], ["disk"]]
    assert ["native", "2", "3", "3", "1", "28", "3"] in shown  # of everybody's 60, a reading leaves 4
    assert ["idle", "host", "1", "2", "0"] in shown
    assert ["only", "native:", "mmap,", "read,", "write"] in shown
    assert " ".join(shown[-1]) == "taken off by hits: what a reading leaves by itself, 2 of them"


def test_names_do_not_move_the_cursor_and_nothing_is_no_table():
    assert "\x1b" not in text([_one("native", None, {"\x1b[2J": 1})])
    assert text([]) == ""
