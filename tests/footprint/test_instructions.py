"""Counted instructions: the plug-in's log, footprints of it, and what is made of them."""

from pathlib import Path

import pytest

from tare.analysis import instructions as analysis
from tare.analysis.comparisons.thresholds import Threshold, Thresholds
from tare.analysis.instructions import START, UNIT
from tare.errors import HostError, ParseError
from tare.features.diff.analysis import FigureOutcome
from tare.features.diff.counted import changes
from tare.features.diff.words import explained
from tare.features.kernel.counters import exact_counts
from tare.features.kernel.counters.exact_counts import COUNTED, InstructionCounter, completed, hits_of, parse
from tare.features.kernel.exchange.count_request import UNITS, WORKLOADS, FootprintRequest, workloads_of
from tare.footprint_model import PARTS, SIDES, Footprint, Phase, Scope
from tare.model import Level

#: Of a real machine: the starts of native (8) and of runc (12), and call-getpid on native (9) and gvisor-kvm (5).
LOG = Path(__file__).with_name("captured") / "instructions.log"
#: In a log: what the model of caches had and had not; none was asked for.
MODEL, NONE = "500 70 9 8 4 1", "0 0 0 0 0 0"


def footprint(hits, **facts):
    defaults = {
        "level": Level.INSTRUCTIONS, "scope": Scope.HOST, "platform": "runc", "phase": Phase.START, "workload": None,
        "repeat": 0, "seconds": 1.0, "hits": hits,
    }  # fmt: skip
    return Footprint(**defaults | facts)


def started(user, repeat=0, **facts):
    return footprint({"user": user + 50, "kernel": 1000, "of;host;python3;user": 50}, repeat=repeat, **facts)


def test_the_log_of_a_real_machine_adds_up():
    windows = parse(LOG.read_text())
    assert len(windows) >= 2
    for window in windows.values():
        for part in PARTS:
            assert sum(counts[part] for _, _, counts in window.shares) == window.whole[part]
        if window.ready is not None:
            assert 0 < window.ready["user"] < window.whole["user"]
    hits = {name: count for name, count in hits_of(windows[9], "tare/x", Scope.HOST).items() if count}
    unit = analysis.unit([footprint(hits, phase=Phase.STEADY, workload="call-getpid")])
    assert unit is not None
    assert round(unit.median) == 323
    assert any(command == "runc" and counts["user"] > 9_000_000 for command, _, counts in windows[12].shares)


def test_what_a_real_guest_executed_is_told_apart_and_its_host_is_the_rest():
    window = parse(LOG.read_text())[5]
    [(_, group, guest)] = [share for share in window.shares if share[0] == "[guest]"]
    assert "/tare/" in group
    hits = {name: count for name, count in hits_of(window, group, Scope.HOST).items() if count}
    counted = [footprint(hits, platform="gvisor-kvm")]
    total, outside = analysis.work(counted), analysis.outside_guest(counted)
    assert total.median - outside.median == guest["user"] + guest["kernel"] == 11_559_343
    assert analysis.outside_guest([started(5)]) is None


def test_the_code_of_a_real_machine_adds_up_to_its_tasks_and_files_have_their_names():
    windows = parse(LOG.read_text())
    for window in windows.values():
        for command, group, counts in window.shares:
            for side in SIDES:
                executed = [count for *owner, of, _, count in window.code if owner == [command, group] and of == side]
                assert sum(executed) == counts[side]
    hits = {name: count for name, count in hits_of(windows[12], "tare/x", Scope.HOST).items() if count}
    by_place = {(code.side, code.place): code.amount.median for code in analysis.code([footprint(hits)])}
    assert by_place["user", "runc"] > 15_000_000
    assert by_place["user", "ld-linux-x86-64.so.2"] > 100_000
    assert by_place["kernel", "unmap_page_range"] > 500_000
    assert ("user", "python3.11") not in by_place, "tare's own is left out"


def test_a_window_that_was_not_closed_is_none():
    open_yet = f"piece 4 10 20 0 0 0 0 0 0 0 {NONE} 3\n"
    closed = f"window 3 10 20 0 0 0 0 0 0 0 {NONE}\nshare 3 10 20 0 0 0 0 0 0 0 {NONE} sh /\n"
    assert list(parse(open_yet + closed)) == [3]


@pytest.mark.parametrize(
    "line",
    [
        "window 1 2 3", f"window x 1 2 3 4 5 6 7 8 9 {NONE}", f"share 1 1 2 3 4 5 6 7 8 9 {NONE} sh",
        f"piece 1 1 2 3 4 5 6 7 8 9 {NONE} -1",
        "hello", "code 1 2 user sh /", "code 1 -2 user sh / libc.so", "code 1 2 loser sh / libc.so",
    ],
)  # fmt: skip
def test_a_line_that_is_none_of_the_plug_ins_is_an_error(line):
    with pytest.raises(ParseError, match="has the line"):
        parse(f"{line}\n")


def test_an_instances_counts_are_of_its_control_group_and_below():
    window = parse(
        f"window 1 100 200 0 0 0 3 2 6 1 {MODEL}\n"
        f"share 1 60 150 0 0 0 2 1 4 1 {MODEL} a;b /tare/x-1/payload\n"
        "code 1 60 user a;b /tare/x-1/payload lib;c.so\n"
        "code 1 150 kernel a;b /tare/x-1/payload do_exit\n"
        f"share 1 30 40 0 0 0 1 1 2 0 {NONE} runc /tare/x-1\n"
        f"share 1 10 10 0 0 0 0 0 0 0 {NONE} dockerd /tare/x-10\n"
        "code 1 10 user dockerd /tare/x-10 dockerd\n"
        f"piece 1 7 9 0 0 0 1 0 0 0 {NONE} 4\n"
    )[1]
    hits = hits_of(window, "tare/x-1", Scope.INSTANCE)
    assert (hits["user"], hits["kernel"], hits["calls"]) == (90, 190, 3)
    assert hits["of;instance;a_b;user"] == 60
    assert "of;host;dockerd;user" not in hits
    whole = hits_of(window, "tare/x-1", Scope.HOST)
    assert (
        whole["user"] == 100 == sum(count for name, count in whole.items() if name.endswith(";user") and "of;" in name)
    )
    assert (whole["piece;0;units"], whole["piece;0;kernel"]) == (4, 9)
    assert (whole["faults"], whole["interrupts"], hits["faults"]) == (6, 1, 6)
    assert (whole["fetched"], whole["l3"], hits["moved"], hits["l2"]) == (500, 1, 70, 4)
    assert (whole["code;instance;a_b;user;lib_c.so"], whole["code;host;dockerd;user;dockerd"]) == (60, 10)
    assert (whole["code;instance;a_b;kernel;do_exit"], [name for name in hits if name.startswith("code")]) == (150, [])


def test_footprints_get_the_counts_of_the_window_that_they_name(tmp_path):
    log = tmp_path / "log"
    log.write_text(f"window 3 10 20 0 0 0 0 0 0 0 {NONE}\nshare 3 10 20 0 0 0 0 0 0 0 {NONE} sh /tare/a\n")
    named, other = footprint({"window:3:tare/a": 1}), footprint({"read": 1}, level=Level.SYSCALLS)
    counts, same = completed([named, other], log)
    assert counts.hits == {"user": 10, "kernel": 20, "of;instance;sh;user": 10, "of;instance;sh;kernel": 20}
    assert same == other
    (run,) = completed([footprint({"window:3:tare/a": 1, "units": 4}, phase=Phase.STEADY, workload="gzip")], log)
    assert run.hits == counts.hits | {"units": 4}
    with pytest.raises(ParseError, match="nothing of window 4"):
        list(completed([footprint({"window:4:tare/a": 1})], log))
    with pytest.raises(ParseError, match="names no window"):
        list(completed([counts], log))


def test_the_marks_do_nothing_on_a_real_processor_and_number_the_windows(monkeypatch):
    monkeypatch.setenv(COUNTED, "1")
    counter = InstructionCounter()
    counter.start("tare/a")
    counter.reset()
    assert counter.read().hits[Scope.HOST] == {"window:2:tare/a": 1}
    counter.stop()


def test_a_machine_that_nobody_counts_says_how_one_is_had(monkeypatch):
    monkeypatch.delenv(COUNTED, raising=False)
    with pytest.raises(HostError) as caught:
        exact_counts.check()
    assert "without --here" in caught.value.fix


def test_its_workloads_are_those_with_units_of_work():
    assert workloads_of(FootprintRequest(level=Level.INSTRUCTIONS)) == UNITS
    assert workloads_of(FootprintRequest(level=Level.INSTRUCTIONS, workloads=("primes",))) == ("primes",)
    assert workloads_of(FootprintRequest()) == WORKLOADS


def test_tares_own_work_is_left_out_and_the_range_is_over_repeats():
    repeats = [started(500), started(520, 1), started(900, 2)]
    assert analysis.work(repeats) == analysis.InstructionAmount(1520, 1500, 1900)
    assert analysis.beside_tare(repeats, "user") == analysis.InstructionAmount(520, 500, 900)
    assert [share.command for share in analysis.shares(repeats)] == ["python3"]


def test_a_unit_is_the_median_piece_so_that_a_tick_of_the_clock_is_none_of_it():
    pieces = {}
    for number, kernel in enumerate((3000, 3000, 9000)):
        pieces |= {f"piece;{number};units": 10, f"piece;{number};user": 180, f"piece;{number};kernel": kernel}
    counted = [footprint(pieces | {"piece;3;kernel": 5}, phase=Phase.STEADY, workload="call-getpid")]
    assert analysis.unit(counted) == analysis.InstructionAmount(318, 318, 318)
    assert analysis.unit([started(5)]) is None


def test_a_unit_of_a_run_is_all_of_it_but_tares_own_by_its_units():
    repeats = [
        started(500, repeat).model_copy(update={"hits": started(500).hits | {"units": units}})
        for repeat, units in enumerate((10, 20, 15))
    ]
    assert (analysis.unit(repeats), analysis.per_unit(repeats, "kernel").median) == (
        analysis.InstructionAmount(100, 75, 150),
        1000 / 15,
    )
    assert (analysis.units(repeats), analysis.in_pieces(repeats)) == (15, False)
    (change,) = changes(repeats, repeats, Thresholds())
    assert (change.metric, change.old) == (START, 1500), "of a start it is no matter"
    work = [repeat.model_copy(update={"phase": Phase.STEADY, "workload": "gzip"}) for repeat in repeats]
    code = [run.model_copy(update={"hits": run.hits | {"code;instance;gzip;user;gzip": 300}}) for run in work]
    (change,) = changes(code, code, Thresholds())
    assert (change.metric, change.old, change.pieces[0].old) == (UNIT, 100, 20), "code too is for one unit"


@pytest.mark.parametrize(
    ("new", "outcome"),
    [
        ((1500, 1510), FigureOutcome.FINE), ((1502, 1540), FigureOutcome.OPEN),
        ((1530, 1560), FigureOutcome.REGRESSION),
        ((1100,), FigureOutcome.FINE),
    ],
)  # fmt: skip
def test_a_change_is_judged_by_all_repeats_of_both_sides(new, outcome):
    old = [started(500, 0), started(505, 1)]
    after = [started(total - 1000, repeat) for repeat, total in enumerate(new)]
    (change,) = changes(old, after, Thresholds(percent=1.0))
    assert change.outcome is outcome
    assert (change.workload, change.metric, change.old) == ("start", START, 1502.5)


def test_ten_thousand_more_in_two_million_are_half_a_percent_and_found():
    old, new = [started(1_999_000)], [started(2_009_001)]
    (change,) = changes(old, new, Thresholds())
    assert change.outcome is FigureOutcome.REGRESSION
    assert change.interval is not None
    assert change.interval.point == pytest.approx(10_001 / 2_000_000)
    assert list(changes(old, new, Thresholds(rule=[Threshold(metric=START, ignore=True)]))) == []


def test_a_change_names_the_code_that_it_is_of_the_most_changed_first():
    def with_code(library, exits, repeat=0):
        of_host = {"code;host;python3;user;libc.so": 9_000, "code;host;runc;kernel;do_exit": exits}
        code = {"code;instance;runc;user;libseccomp.so": library, "code;host;runc;user;runc": 700}
        return started(library + 700, repeat).model_copy(update={"hits": started(library + 700).hits | of_host | code})

    (change,) = changes([with_code(1_000, 300)], [with_code(5_000, 290)], Thresholds())
    assert [(piece.side, piece.place, piece.old, piece.new) for piece in change.pieces] == [
        ("user", "", 1_700, 5_700), ("kernel", "", 300, 290), ("user", "libseccomp.so", 1_000, 5_000),
        ("kernel", "do_exit", 300, 290), ("user", "runc", 700, 700),
    ]  # fmt: skip
    assert explained(change) == "runc start, 4,000 more: all programs +4,000, libseccomp.so +4,000"
    (change,) = changes([started(1_000)], [with_code(5_000, 290)], Thresholds())
    assert (change.pieces, explained(change)) == ((), ""), "files of an older tare do not say"


def test_two_platforms_of_one_file_are_compared_by_their_figures():
    unit = {"piece;0;units": 10, "piece;0;user": 200, "piece;0;kernel": 3000}
    work = {"phase": Phase.STEADY, "workload": "call-getpid"}
    counted = [footprint(unit, **work), footprint(unit | {"piece;0;kernel": 4000}, platform="gvisor", **work)]
    (change,) = changes(counted, counted, Thresholds(), ("runc", "gvisor"))
    assert (change.metric, change.old, change.new) == (UNIT, 320, 420)
