"""Ways to measure wrongly: each is tried here, or shown to be out of the way."""

import time
from pathlib import Path

import pytest

from tare.campaign.execution.slices import LEAD_NS, MAX_LEAD_NS, CpuShare, PlannedSlice, lead_of, read_result, tick
from tare.errors import ParseError, TooLateError
from tare.host import cgroup
from tare.model import Arm
from tare.platforms import platform_registry
from tare.session import ProbeResult
from tare.session.request_results import ClockOffset, PartResult, ProbeSlice
from tare.workloads import workload_registry as workloads

# 1. A clock inside that ticks in 10 ms, as gVisor's thread clock does.

MS = 1_000_000


def _ticking(step_ns, count=8):
    """A probe's slices of about 100 ms, read by a clock that goes in steps."""
    slices = []
    for number in range(count):
        start, end = (at // step_ns * step_ns for at in (number * 333_333_331, number * 333_333_331 + 101_234_567))
        slices.append(ProbeSlice(start, end, {"events": PartResult(1000, end - start)}))
    return ProbeResult(tuple(slices), 0)


def _read(result, between=None, *, costed=True):
    primes = workloads.get("primes")
    shares = [
        CpuShare(PlannedSlice(number, 0, Arm("x"), 0, number, 100 * MS, costed=costed), before, after, 90 * MS, None)
        for number, (before, after) in enumerate(between or [(-1, 10**18)] * len(result.slices))
    ]
    return read_result(primes, result, shares, lambda instant: instant)


@pytest.mark.parametrize("step_ns", [MS, 4 * MS, 10 * MS])
def test_a_coarse_clock_inside_is_said_and_gives_no_figure(step_ns):
    assert tick(_ticking(step_ns)) == step_ns
    with pytest.raises(ParseError, match=f"ticks every {step_ns // MS} ms"):
        _read(_ticking(step_ns))


def test_a_fine_clock_and_a_few_slices_pass():
    assert len(_read(_ticking(1000)).slices) == 8
    assert len(_read(_ticking(10 * MS, count=2)).slices) == 2, "two readings of a kind may be chance"


def test_cpu_time_is_the_hosts_and_not_the_clocks_inside():
    samples = _read(_ticking(1)).samples
    costs = {sample.value for sample in samples if sample.metric == "cpu-cost"}
    assert costs == {90 * MS / 1000}


def test_a_slice_too_short_for_its_cost_has_a_rate_and_its_cpu_time_as_a_fact():
    sliced = _read(_ticking(1), costed=False)
    assert {sample.metric for sample in sliced.samples} == {"events-per-second"}
    assert {facts.cpu_ns for facts in sliced.slices} == {90 * MS}


def test_a_slice_that_the_host_read_too_late_or_too_soon_has_no_cpu_time():
    result = _ticking(1, count=3)
    first, second, third = result.slices
    in_time = [(turn.start_ns, turn.end_ns) for turn in result.slices]
    assert len([sample for sample in _read(result, in_time).samples if sample.metric == "cpu-cost"]) == 3
    late = [in_time[0], (second.start_ns + 1, second.end_ns), (third.start_ns, third.end_ns - 1)]
    sliced = _read(result, late)
    assert [turn.cpu_ns for turn in sliced.slices] == [90 * MS, None, None]
    assert [sample.round for sample in sliced.samples if sample.metric == "cpu-cost"] == [0]
    assert len([sample for sample in sliced.samples if sample.metric == "events-per-second"]) == 3
    assert sliced.cpu_ns == 270 * MS, "in all it is what was used"
    assert first.start_ns == 0


def test_a_slice_that_came_too_late_to_do_all_its_parts_has_no_figure_and_the_others_have():
    first, second, third = _ticking(1, count=3).slices
    end_ns = second.start_ns + 20_000  # of the 100 ms there were 20 us left, on a busy CPU
    late = ProbeSlice(second.start_ns, end_ns, {"events": PartResult(0, end_ns - second.start_ns)})
    sliced = _read(ProbeResult((first, late, third), 0))
    assert [sample.round for sample in sliced.samples if sample.metric == "events-per-second"] == [0, 2]
    assert [turn.round for turn in sliced.slices] == [0, 1, 2]
    idle = ProbeSlice(second.start_ns, second.end_ns, {"events": PartResult(0, second.end_ns - second.start_ns)})
    with pytest.raises(ParseError, match="did no 'events' in a slice"):
        _read(ProbeResult((first, idle, third), 0))


@pytest.mark.parametrize("had_ns", [0, 1, 20_000], ids=["none", "one ns", "20 us"])
def test_slices_that_all_came_too_late_are_said_to_have_and_the_clock_is_not_to_blame(had_ns):
    late = [
        ProbeSlice(due.end_ns, due.end_ns + had_ns, {"events": PartResult(0, had_ns)}) for due in _ticking(1).slices
    ]
    with pytest.raises(TooLateError, match="all of its 8 slices came too late"):
        _read(ProbeResult(tuple(late), 0))


def test_an_agent_that_answers_slowly_is_sent_its_slices_earlier():
    quick, slow = ClockOffset(0, 50_000), ClockOffset(0, 200 * MS)  # the emulated guest of an emulated host
    assert LEAD_NS <= lead_of([quick, quick]) < 1.1 * LEAD_NS
    assert lead_of([quick, slow]) > 10 * slow.uncertainty_ns
    assert lead_of([ClockOffset(0, 10**12)]) == MAX_LEAD_NS


# 2. A control group's weight is a treatment: all have the same, native too.

NAMES = ("native", "runc", "docker", "gvisor", "bubblewrap")


@pytest.mark.host
def test_every_instance_is_in_a_sibling_group_of_the_same_weight(launcher):
    weights = {}
    for name in NAMES:
        [platform] = platform_registry.choose([name])
        platform.prepare(launcher.image)
        running = launcher.start(platform, Arm(name), measured=False)
        try:
            weights[name] = [_weights(pid) for pid in running.instance.host_processes()]
        finally:
            running.stop()
            platform.close()
    for name, chains in weights.items():
        assert chains, name
        for chain in chains:
            assert chain[:2] == weights["native"][0][:2], f"{name}: {chain}"


def _weights(pid):
    """The weights from the parent of all instances down to the process's own group."""
    tree = cgroup.hierarchies()
    root, file = (tree.v2, "cpu.weight") if tree.unified else (tree.v1["cpu"], "cpu.shares")
    lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    [path] = [path for _, names, path in lines if (names == "" if tree.unified else "cpu" in names.split(","))]
    parts = path.strip("/").split("/")
    assert parts[0] == "tare"
    return [(root / "/".join(parts[: depth + 1]) / file).read_text().strip() for depth in range(len(parts))]


# 3. Driving through the stream costs CPU: while slices run, nobody speaks.


@pytest.mark.host
def test_nothing_goes_over_the_stream_while_slices_run(launcher):
    [platform] = platform_registry.choose(["native"])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm("native"), measured=False)
    try:
        sent = []
        stream = running.instance.stream
        send = stream.send
        stream.send = lambda *arguments: (sent.append(time.monotonic_ns()), send(*arguments))
        probe = running.session.probe("primes", {"max_prime": 10_000}, 10 * MS)
        probe.wait_ready(10)
        offset = running.session.sync_clock()
        first = time.monotonic_ns() + 200 * MS
        turns = [(offset.to_agent(first + number * 60 * MS), 50 * MS) for number in range(10)]
        probe.begin(turns)
        sent_before = len(sent)
        time.sleep(0.9)
        result = probe.wait(10)
        assert len(result.slices) == 10
        last = offset.to_host(result.slices[-1].end_ns)
        assert [at for at in sent[sent_before:] if at < last] == []
        assert all(at < first for at in sent[:sent_before])
    finally:
        running.stop()
        platform.close()


# 4. CPU time hides waiting: it never stands alone (tests/analysis: what differs from the headline is flagged).


def test_every_workload_with_a_cpu_cost_has_a_headline_of_its_own():
    for workload in workloads.all_workloads().values():
        assert workload.all_metrics[0].name != "cpu-cost", workload.name
