"""All live instances in turn: short self-paced slices on the same CPUs, in random order in each round.

The host gives every agent the instants of its slices beforehand and then only wakes between slices to read the
control groups' CPU time, so that neither the driving stream nor the harness is part of what is measured (METHOD,
trap 3).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.campaign.instances import Live
from tare.campaign.schedule import Stage
from tare.errors import ParseError, SessionError
from tare.model import Arm, Sample, SliceFacts
from tare.session.session import ClockOffset, Probe, ProbeResult, Slice
from tare.workloads.base import Params, SliceWorkload

#: Idle time between two slices: the one before may end late, and the host reads the counters in the middle.
GAP_NS = 10_000_000
#: Between an instance's warm-up and the next one's.
LEAD_NS = 20_000_000
#: What the host waits beyond the last planned instant for the agents' answers.
GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Turn:
    """One planned slice of one arm; on the host's monotonic clock."""

    round: int
    position: int
    arm: Arm
    start_ns: int


@dataclass(frozen=True, slots=True)
class Sliced:
    """What one arm's slices gave, or the reason why they gave nothing."""

    samples: tuple[Sample, ...] = ()
    slices: tuple[SliceFacts, ...] = ()
    cpu_ns: int | None = None
    daemon_cpu_ns: int | None = None
    error: SessionError | ParseError | None = None


def plan_turns(rounds: Sequence[Sequence[Arm]], first_ns: int, slice_ns: int) -> list[Turn]:
    """Lay the rounds out in time: a slice, a gap, the next slice."""
    turns = []
    for number, order in enumerate(rounds):
        for position, arm in enumerate(order):
            start = first_ns + len(turns) * (slice_ns + GAP_NS)
            turns.append(Turn(number, position, arm, start))
    return turns


def run_slices(workload: SliceWorkload, params: Params, stage: Stage, lives: Mapping[Arm, Live]) -> dict[Arm, Sliced]:
    """Run one stage in all live instances. An instance that fails does not disturb the others."""
    slice_ns = int(float(params["slice_ms"]) * 1e6)
    warmup_ns = int(float(params["warmup_ms"]) * 1e6)
    rounds = [[arm for arm in order if arm in lives] for order in stage.rounds]
    errors: dict[Arm, SessionError] = {}
    offsets: dict[Arm, ClockOffset] = {}
    for arm, live in lives.items():
        try:
            offsets[arm] = live.session.sync_clock()
        except SessionError as error:
            errors[arm] = error
    # The warm-ups come one after the other: together they would size each other's chunks wrongly.
    first_ns = time.monotonic_ns() + len(lives) * (warmup_ns + LEAD_NS) + 5 * LEAD_NS
    turns = plan_turns(rounds, first_ns, slice_ns)
    probes = _begin(workload, params, lives, turns, offsets, slice_ns, warmup_ns, errors)
    readings = _watch(turns, slice_ns, list(lives.values()))
    return {arm: _collect(workload, arm, lives, turns, probes, offsets, readings, errors) for arm in lives}


def _begin(
    workload: SliceWorkload,
    params: Params,
    lives: Mapping[Arm, Live],
    turns: Sequence[Turn],
    offsets: Mapping[Arm, ClockOffset],
    slice_ns: int,
    warmup_ns: int,
    errors: dict[Arm, SessionError],
) -> dict[Arm, Probe]:
    probes: dict[Arm, Probe] = {}
    for arm, offset in offsets.items():
        slices = [Slice(turn.start_ns + offset.offset_ns, slice_ns) for turn in turns if turn.arm == arm]
        try:
            probes[arm] = lives[arm].session.probe(workload.probe, workload.probe_params(params), warmup_ns, slices)
        except SessionError as error:
            errors[arm] = error
        time.sleep((warmup_ns + LEAD_NS) / 1e9)
    return probes


#: CPU time by arm, of the instance and of its daemons, at one gap.
_Reading = dict[Arm, tuple[int, int | None]]


def _watch(turns: Sequence[Turn], slice_ns: int, lives: Sequence[Live]) -> list[_Reading]:
    """Read all counters in the gap before each turn and after the last: one more reading than turns."""
    instants = [turn.start_ns - GAP_NS // 2 for turn in turns]
    instants.append(turns[-1].start_ns + slice_ns + GAP_NS // 2)
    readings: list[_Reading] = []
    for instant in instants:
        time.sleep(max(0, instant - time.monotonic_ns()) / 1e9)
        readings.append({live.arm: (live.cpu_ns(), live.daemon_cpu_ns()) for live in lives})
    return readings


def _collect(
    workload: SliceWorkload,
    arm: Arm,
    lives: Mapping[Arm, Live],
    turns: Sequence[Turn],
    probes: Mapping[Arm, Probe],
    offsets: Mapping[Arm, ClockOffset],
    readings: Sequence[_Reading],
    errors: Mapping[Arm, SessionError],
) -> Sliced:
    if arm in errors:
        return Sliced(error=errors[arm])
    try:
        result = probes[arm].wait(GRACE_S)
    except SessionError as error:
        return Sliced(error=error)
    try:
        return read_result(workload, arm, result, turns, offsets[arm].offset_ns, readings)
    except ParseError as error:
        return Sliced(error=error)


def read_result(
    workload: SliceWorkload,
    arm: Arm,
    result: ProbeResult,
    turns: Sequence[Turn],
    offset_ns: int,
    readings: Sequence[_Reading],
) -> Sliced:
    """Put what the agent says beside what the host read. Raises `ParseError` when it did not do as planned."""
    mine = [(index, turn) for index, turn in enumerate(turns) if turn.arm == arm]
    if len(mine) != len(result.slices):
        raise ParseError(f"{len(mine)} slices were planned, the agent reports {len(result.slices)}")
    samples: list[Sample] = []
    facts: list[SliceFacts] = []
    for (index, turn), done in zip(mine, result.slices, strict=True):
        cpu, daemon = _difference(readings[index][arm], readings[index + 1][arm])
        start_ns = done.start_ns - offset_ns
        wall_ns = done.end_ns - done.start_ns
        figures = workload.read_slice({part.name: (part.work, part.wall_ns) for part in done.parts}, cpu)
        samples += [Sample(name, value, turn.round) for name, value in figures.items()]
        late_ns = start_ns - turn.start_ns
        facts.append(SliceFacts(turn.round, turn.position, start_ns, wall_ns, cpu, daemon, late_ns))
    cpu_total = sum(fact.cpu_ns for fact in facts if fact.cpu_ns is not None)
    shared = [fact.daemon_cpu_ns for fact in facts if fact.daemon_cpu_ns is not None]
    return Sliced(tuple(samples), tuple(facts), cpu_total, sum(shared) if shared else None)


def _difference(before: tuple[int, int | None], after: tuple[int, int | None]) -> tuple[int, int | None]:
    daemon = after[1] - before[1] if after[1] is not None and before[1] is not None else None
    return after[0] - before[0], daemon
