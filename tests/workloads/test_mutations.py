"""Damaged output of real tools gives an error or the same figures, never wrong ones."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.errors import ParseError
from tare.workloads import registry
from tare.workloads.output import ROUNDING
from workloads.captures import CAPTURED_WITH, captured, completed, text, wall_s

WORKLOADS = registry.all_workloads()

#: Every good capture: workload, parameters, the outputs of its measures.
GOOD = [
    ("sysbench-cpu", {}, ["sysbench-cpu"]),
    ("sysbench-cpu", {"events": 300}, ["sysbench-cpu-events"]),
    ("sysbench-memory", {}, ["sysbench-memory"]),
    ("sysbench-memory", {"total_mib": 2048}, ["sysbench-memory-total"]),
    ("sysbench-fileio-seqrd", {}, ["sysbench-fileio-seqrd"]),
    ("sysbench-fileio-seqrd", {}, ["sysbench-fileio-seqrd-late"]),
    ("sysbench-fileio-seqrd", {"passes": 0, "time_s": 1}, ["sysbench-fileio-seqrd-by-time"]),
    ("sysbench-fileio-seqwr", {"total_mib": 256, "time_s": 2}, ["sysbench-fileio-seqwr"]),
    ("udp-rtt", {}, ["udp-rtt"]),
    ("iperf3-tcp", {}, ["iperf3-to", "iperf3-from"]),
    ("iperf3-tcp", {"time_s": 2, "omit_s": 1}, ["iperf3-to-omit", "iperf3-from-omit"]),
]
EACH = [
    pytest.param(name, params, captures, at, id=captures[at])
    for name, params, captures in GOOD
    for at in range(len(captures))
]


def outcome_of(name, params, captures, at=0, damaged=None):
    """The outcome with the output at one place replaced; None when it is refused."""
    results = [captured(capture) for capture in captures]
    if damaged is not None:
        results[at] = completed(damaged, wall_s=wall_s(captures[at]))
    try:
        return WORKLOADS[name].parse(
            {**WORKLOADS[name].profiles["quick"], **CAPTURED_WITH.get(name, {}), **params}, results
        )
    except ParseError:
        return None


@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_cut_off_anywhere(name, params, captures, at):
    whole = text(captures[at])
    good = outcome_of(name, params, captures)
    assert good is not None
    accepted = [end for end in range(len(whole)) if outcome_of(name, params, captures, at, whole[:end]) is not None]
    assert all(outcome_of(name, params, captures, at, whole[:end]) == good for end in accepted)
    # Only the very end holds nothing: blank lines, and the last digits of sysbench's last line, which is not used.
    last_line = whole.rstrip().rfind("\n")
    assert all(end > last_line for end in accepted)


@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_a_line_that_is_missing_or_twice(name, params, captures, at):
    lines = text(captures[at]).splitlines(keepends=True)
    good = outcome_of(name, params, captures)
    for number, line in enumerate(lines):
        for copies in (0, 2):
            damaged = "".join([*lines[:number], line * copies, *lines[number + 1 :]])
            outcome = outcome_of(name, params, captures, at, damaged)
            assert outcome in (None, good)
            if line.strip() and captures[at].startswith("sysbench"):
                assert outcome is None, f"{copies} times {line!r}"


@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_one_other_digit_is_seen_or_below_the_tools_rounding(name, params, captures, at):
    whole = text(captures[at])
    good = outcome_of(name, params, captures)
    for place in (match.start() for match in re.finditer(r"\d", whole)):
        for digit in ("0", "9"):
            damaged = whole[:place] + digit + whole[place + 1 :]
            outcome = outcome_of(name, params, captures, at, damaged)
            if outcome is not None:
                # Two figures that are compared may each be off by the tolerance before they contradict each other.
                near = pytest.approx(good.samples, rel=3 * ROUNDING)
                assert outcome.samples == near, damaged[max(0, place - 40) : place + 20]
                assert outcome.work == pytest.approx(good.work, rel=3 * ROUNDING)


@given(junk=st.one_of(st.binary(max_size=400), st.text(max_size=400)))
def test_junk_is_refused(junk):
    for name, params, captures in GOOD:
        assert outcome_of(name, params, captures, damaged=junk) is None


@given(data=st.data())
def test_junk_in_the_middle_is_refused_or_harmless(data):
    name, params, captures = data.draw(st.sampled_from(GOOD))
    whole = text(captures[0])
    place = data.draw(st.integers(0, len(whole)))
    junk = data.draw(st.text(alphabet="abcxyz:/()%<>\x00\x1b", min_size=1, max_size=20))
    outcome = outcome_of(name, params, captures, damaged=whole[:place] + junk + whole[place:])
    assert outcome in (None, outcome_of(name, params, captures))
