"""Damaged output of real tools gives an error or the same figures, never wrong ones."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.errors import ParseError
from tare.testing import NEAR, Capture, changed_digits, changed_lines, cuts, junk
from tare.workloads import workload_registry
from workloads.captures import CAPTURED_WITH, captured, completed, outputs_of, text, wall_s

WORKLOADS = workload_registry.all_workloads()

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
    ("gzip", {}, ["gzip"]),
    ("sqlite-insert", {}, ["sqlite-insert"]),
    ("iperf3-tcp", {"time_s": 1, "omit_s": 0}, ["iperf3-to", "iperf3-from"]),
    ("iperf3-tcp", {"time_s": 2, "omit_s": 1}, ["iperf3-to-omit", "iperf3-from-omit"]),
]
EACH = [
    pytest.param(name, params, captures, at, id=captures[at])
    for name, params, captures in GOOD
    for at in range(len(captures))
]


def params_of(name, params):
    """All parameters of a captured run: its own above those that its workload was captured with."""
    return {**WORKLOADS[name].profiles["quick"], **CAPTURED_WITH.get(name, {}), **params}


def outcome_of(name, params, captures, at=0, damaged=None):
    """The outcome with the output at one place replaced; None when the parser by itself refuses it."""
    outputs = outputs_of(captures)
    if damaged is not None:
        outputs[at] = Capture(stdout=damaged, wall_s=outputs[at].wall_s)
    try:
        return WORKLOADS[name].parse(params_of(name, params), [output.completed() for output in outputs])
    except ParseError:
        return None


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_cut_off_anywhere(name, params, captures, at):
    whole = text(captures[at])
    good = outcome_of(name, params, captures)
    assert good is not None
    accepted = [cut for _, cut in cuts(whole) if outcome_of(name, params, captures, at, cut) is not None]
    assert all(outcome_of(name, params, captures, at, cut) == good for cut in accepted)
    # Only the very end holds nothing: blank lines, and the last digits of sysbench's last line, which is not used.
    last_line = whole.rstrip().rfind("\n")
    assert all(len(cut) > last_line for cut in accepted)


@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_a_line_that_is_missing_or_twice(name, params, captures, at):
    whole = text(captures[at])
    good = outcome_of(name, params, captures)
    each_twice = (line for line in whole.splitlines() for _ in range(2))  # it is left out, and doubled
    for line, (how, damaged) in zip(each_twice, changed_lines(whole), strict=True):
        result = outcome_of(name, params, captures, at, damaged)
        assert result in (None, good), how
        if line.strip() and captures[at].startswith("sysbench"):
            assert result is None, f"{how}: {line!r}"


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_one_other_digit_is_seen_or_below_the_tools_rounding(name, params, captures, at):
    good = outcome_of(name, params, captures)
    for how, damaged in changed_digits(text(captures[at])):
        result = outcome_of(name, params, captures, at, damaged)
        if result is not None:
            assert result.samples == pytest.approx(good.samples, rel=NEAR), how
            assert result.work == pytest.approx(good.work, rel=NEAR), how


@pytest.mark.parametrize(("name", "params", "captures", "at"), EACH)
def test_a_number_of_thousands_of_digits_is_refused(name, params, captures, at):
    whole = text(captures[at])
    places = [match.start() for match in re.finditer(r"\d+", whole)]
    for place in places[:: len(places) // 12 + 1]:
        assert outcome_of(name, params, captures, at, f"{whole[:place]}{'7' * 5000}{whole[place:]}") is None


@given(noise=st.binary(max_size=400))
def test_bytes_of_chance_are_refused(noise):
    for name, params, captures in GOOD:
        results = [completed(noise, wall_s=wall_s(captures[0])), *map(captured, captures[1:])]
        with pytest.raises(ParseError):
            WORKLOADS[name].parse(params_of(name, params), results)


@given(noise=st.text(max_size=400))
def test_text_of_chance_is_refused(noise):
    for name, params, captures in GOOD:
        assert junk(WORKLOADS[name], params_of(name, params), outputs_of(captures), noise) is None


@given(data=st.data())
def test_junk_in_the_middle_is_refused_or_harmless(data):
    name, params, captures = data.draw(st.sampled_from(GOOD))
    whole = text(captures[0])
    place = data.draw(st.integers(0, len(whole)))
    noise = data.draw(st.text(alphabet="abcxyz:/()%<>\x00\x1b", min_size=1, max_size=20))
    result = outcome_of(name, params, captures, damaged=whole[:place] + noise + whole[place:])
    assert result in (None, outcome_of(name, params, captures))
