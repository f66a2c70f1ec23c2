"""All running instances in turn: short self-paced slices on the same CPU, in random order in each round.

Instances may have several CPUs; the probe's thread is kept on the last of them, so that slices are as quiet as with one
CPU, and what the platform itself needs beside (a monitor's threads, a sentry) has the others.

The host sends every agent the instants of its slices beforehand and then only wakes between slices to read the
control groups' CPU time, so that neither the stream nor the harness is part of what is measured (docs/method.md,
Rounds).
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from tare.campaign.execution.circumstances import total_ns
from tare.campaign.instances import inside_clock
from tare.campaign.instances.launcher import RunningInstance
from tare.campaign.plan.schedule import Stage
from tare.errors import Failed, ParseError, TooLateError, UnsupportedError, attempt
from tare.model import Arm, ClockFacts, Sample, SliceFacts
from tare.session import MAX_SLICES, ClockOffset, Probe, ProbeResult, Refused
from tare.session.request_results import ProbeSlice
from tare.workloads.base import Params, SliceWorkload
from tare.workloads.workload_contract import checked

T = TypeVar("T")

#: Idle time between two slices: the one before may end late, and the host reads the counters in the middle.
GAP_NS = 10_000_000
#: Lead with which the agents are sent the instants of slices: `LEAD_NS`, and as many round trips of the slowest
#: agent's fastest message, as others take several times as long; but no longer than the most.
LEAD_NS, LEAD_ROUND_TRIPS, MAX_LEAD_NS = 100_000_000, 20, 30_000_000_000
#: Longest time for a probe to allocate what it needs, beyond its warm-up.
WARM_LIMIT_S = 20.0
#: A clock whose steps are longer than this share of a slice distorts the figures; fewer readings than
#: these may have a common divisor by chance.
COARSEST, MIN_READINGS = 0.002, 6
#: The agent's error code for what its platform does not have.
UNSUPPORTED = "unsupported"
#: How long the host waits for the agents' answers after the last planned instant.
GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """One planned slice of one arm; times on the host's monotonic clock."""

    round: int
    position: int
    arm: Arm
    start_ns: int
    slot: int  # turns of one slot run at once
    slice_ns: int
    cpu: int | None = None  # index in the instances' CPUs of the one that it is pinned to; None: all of them
    costed: bool = True  # whether its CPU time gives a figure: not in slices too short for that


@dataclass(frozen=True, slots=True)
class Sliced:
    """The figures of one arm's slices, or the error because of which there are none."""

    samples: tuple[Sample, ...] = ()
    slices: tuple[SliceFacts, ...] = ()
    cpu_ns: int | None = None
    daemon_cpu_ns: int | None = None
    work: float = 0.0  # of all slices, in the workload's units
    clock: ClockFacts | None = None  # the clock inside, which timed them
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of each of these arms, or of a duet's two at once."""

    order: tuple[Arm, ...]
    slice_ns: int
    costed: bool = True  # whether the slices' CPU time gives figures: not in slices too short for that


def rounds_of(orders: Sequence[Sequence[Arm]], params: Params) -> tuple[Round, ...]:
    """Return the rounds of a stage with these parameters.

    Of the rounds of the same arms the last ``long_rounds`` have slices of ``long_ms``, and only these have CPU costs:
    each slice costs a platform something of its own, for waking up and going to sleep, which is little beside a long
    one. The others take ``slice_ms``: the shorter, the more alike is the host's weather in all turns of a round.
    """
    slice_ns, long_ns = (int(float(params.get(key, 0)) * 1e6) for key in ("slice_ms", "long_ms"))
    long_rounds = int(params.get("long_rounds", 0))
    left = Counter(frozenset(order) for order in orders)
    rounds = []
    for order in orders:
        is_long = left[frozenset(order)] <= long_rounds
        left[frozenset(order)] -= 1
        rounds.append(Round(tuple(order), long_ns if is_long else slice_ns, costed=is_long or not long_rounds))
    return tuple(rounds)


def plan_turns(
    rounds: Sequence[Round],
    first_ns: int,
    *,
    gap_ns: int = GAP_NS,
    at_once: bool = False,
    own_cpus: bool = True,
) -> list[PlannedSlice]:
    """Lay the rounds out in time: a slice, a gap, the next slice.

    ``at_once``: all arms of a round run their slices together; with ``own_cpus`` each is pinned to a CPU of its own.
    """
    turns: list[PlannedSlice] = []
    slot, start_ns = 0, first_ns
    for number, planned in enumerate(rounds):
        for position, arm in enumerate(planned.order):
            cpu = position if at_once and own_cpus else None
            turns.append(PlannedSlice(number, position, arm, start_ns, slot, planned.slice_ns, cpu, planned.costed))
            if not at_once or position == len(planned.order) - 1:
                slot, start_ns = slot + 1, start_ns + planned.slice_ns + gap_ns
    return turns


def run_slices(
    workload: SliceWorkload,
    params: Params,
    stage: Stage,
    running_instances: Mapping[Arm, RunningInstance],
    extra: Mapping[str, Params] = MappingProxyType({}),
) -> dict[Arm, Sliced]:
    """Run one stage in all running instances; results by arm. An instance that fails does not disturb the others.

    ``extra``: more parameters of the probe, by platform. A probe takes at most `MAX_SLICES` slices: where an arm has
    more, as the baseline of a duet with many platforms, the rounds are run in several parts, each with new probes.
    """
    sliced: dict[Arm, Sliced] = {}
    first = 0
    for rounds in in_parts(rounds_of(stage.rounds, params)):
        arms = {arm for planned in rounds for arm in planned.order}
        sound = {
            arm: running for arm, running in running_instances.items() if arm in arms and not _failed(sliced.get(arm))
        }
        # Where all of a round run together, whoever shares the CPUs is what is measured, or the host places them.
        phase = _Phase(workload, params, sound, extra, pinned=not stage.at_once)
        part = _run_part(phase, stage, rounds)
        sliced |= {arm: _joined(sliced.get(arm), arm_result, first) for arm, arm_result in part.items()}
        first += len(rounds)
    return {arm: sliced.get(arm, Sliced(error=ParseError("it had no slices"))) for arm in running_instances}


def in_parts(rounds: Sequence[Round]) -> list[Sequence[Round]]:
    """Split the rounds into the fewest parts of equal size with at most `MAX_SLICES` slices of an arm in each."""
    parts = math.ceil(_most_slices(rounds) / MAX_SLICES)
    while True:
        size = max(1, math.ceil(len(rounds) / max(1, parts)))
        split = [rounds[at : at + size] for at in range(0, len(rounds), size)]
        if all(_most_slices(part) <= MAX_SLICES for part in split):
            return split
        parts += 1


def _most_slices(rounds: Sequence[Round]) -> int:
    """Return the largest number of slices that an arm has, its closing slice included."""
    return 1 + max(Counter(arm for planned in rounds for arm in planned.order).values(), default=0)


def _run_part(phase: _Phase, stage: Stage, rounds: Sequence[Round]) -> dict[Arm, Sliced]:
    phase.warm_up()
    turns = phase.begin(rounds, at_once=stage.at_once, own_cpus=stage.own_cpus)
    readings = phase.watch(turns)
    if stage.at_once and stage.own_cpus:
        phase.release()
    return {arm: phase.collect(arm, turns, readings) for arm in phase.running_instances}


def _failed(sliced: Sliced | None) -> bool:
    return sliced is not None and sliced.error is not None


def _joined(before: Sliced | None, after: Sliced, first: int) -> Sliced:
    """Join the slices of one arm from two parts; the second part begins with round ``first``."""
    if before is None or after.error is not None:
        return after
    return Sliced(
        (*before.samples, *(replace(sample, round=first + sample.round) for sample in after.samples)),
        (*before.slices, *(replace(facts, round=first + facts.round) for facts in after.slices)),
        total_ns((before.cpu_ns, after.cpu_ns)),
        total_ns((before.daemon_cpu_ns, after.daemon_cpu_ns)),
        before.work + after.work,
        inside_clock.most_off((before.clock, after.clock)),
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """All counters, read in one gap; times on the host's monotonic clock, of the first counter and the last."""

    begin_ns: int
    end_ns: int
    cpu_ns: Mapping[Arm, tuple[int | None, int | None]]  # of the instance, and of its daemons


@dataclass(frozen=True, slots=True)
class CpuShare:
    """The CPU time of one turn by the counters, and the instants between which it was used."""

    turn: PlannedSlice
    after_ns: int  # when the reading before the turn was complete
    before_ns: int  # when the reading after the turn began
    cpu_ns: int | None
    daemon_cpu_ns: int | None

    def holds(self, start_ns: int, end_ns: int) -> bool:
        """Return True if the slice lies wholly between the readings; else another share has a part of its CPU time."""
        return self.after_ns <= start_ns and end_ns <= self.before_ns


@dataclass(slots=True)
class _Phase:
    """One stage under way."""

    workload: SliceWorkload
    params: Params
    running_instances: Mapping[Arm, RunningInstance]
    extra: Mapping[str, Params]
    pinned: bool  # whether each probe's thread is kept on one CPU, the same for all (`Resources.probe_cpu`)
    offsets: dict[Arm, ClockOffset] = field(default_factory=dict)
    probes: dict[Arm, Probe] = field(default_factory=dict)
    errors: dict[Arm, Exception] = field(default_factory=dict)  # the first of each arm

    @property
    def gap_ns(self) -> int:
        """The workload's gap between slices, at least `GAP_NS`: some workloads' slices end late."""
        return max(GAP_NS, int(self.workload.gap_ms * 1e6))

    @property
    def warmup_ns(self) -> int:
        return int(float(self.params["warmup_ms"]) * 1e6)

    def warm_up(self) -> None:
        """Let every probe allocate and warm up, one after the other: at once they would distort their chunk sizes."""
        for arm in self.running_instances:
            self._guarded(arm, partial(self._warm, arm))

    def _warm(self, arm: Arm) -> None:
        running = self.running_instances[arm]
        fitted = self.workload.fitted(self.params, running.instance.spec.resources.memory_bytes)
        probe_params = self.workload.probe_params(fitted)
        extra_params = self.extra.get(arm.platform, {})
        sent = {**probe_params, **extra_params}
        probe = running.session.probe(self.workload.probe, sent, self.warmup_ns, pinned=self.pinned)
        probe.wait_ready(time_limit_s=WARM_LIMIT_S + self.warmup_ns / 1e9)
        # After the warm-up: the clock is read while nothing else runs on the instance's CPUs.
        self.offsets[arm] = running.session.sync_clock()
        self.probes[arm] = probe

    def _guarded(self, arm: Arm, task: Callable[[], T]) -> T | None:
        """Run a task for one arm, and record its error as the arm's; no other arm is affected. None when it failed."""
        result = attempt(task)
        if isinstance(result, Failed):
            self.errors.setdefault(arm, _as_unsupported(result.error))
            return None
        return result

    def begin(self, rounds: Sequence[Round], *, at_once: bool, own_cpus: bool) -> list[PlannedSlice]:
        """Send every agent its slices, and a closing slice of no length after the last slice of all arms.

        After its last slice a probe checks what it computed, and frees its memory: STREAM goes through all of its
        arrays. Without the closing slice it would do so during the last slices of other arms.
        """
        ready = [
            replace(planned, order=tuple(arm for arm in planned.order if arm in self.probes)) for planned in rounds
        ]
        if at_once:  # an arm whose partner is lost cannot run a duet
            ready = [planned for planned in rounds if all(arm in self.probes for arm in planned.order)]
        lead_ns = lead_of(self.offsets[arm] for arm in self.probes)
        first_ns = time.monotonic_ns() + lead_ns
        turns = plan_turns(ready, first_ns, gap_ns=self.gap_ns, at_once=at_once, own_cpus=own_cpus)
        for arm, probe in self.probes.items():
            offset = self.offsets[arm]
            own_slices = [(offset.to_agent(turn.start_ns), turn.slice_ns) for turn in turns if turn.arm == arm]
            closing = [(offset.to_agent(self._over_ns(turns)), 0)] if own_slices else []
            self._guarded(arm, partial(probe.begin, [*own_slices, *closing]))
        return turns

    def _over_ns(self, turns: Sequence[PlannedSlice]) -> int:
        """Return when the last turn and its gap end."""
        return turns[-1].start_ns + turns[-1].slice_ns + self.gap_ns

    def watch(self, turns: Sequence[PlannedSlice]) -> list[Reading]:
        """Read all counters in the gap before each slot and after the last: one more reading than slots."""
        if not turns:
            return []
        slots = {turn.slot: turn.start_ns for turn in turns}
        instants = [start_ns - GAP_NS // 2 for start_ns in slots.values()]
        instants.append(self._over_ns(turns) - GAP_NS // 2)
        readings: list[Reading] = []
        with promptly():
            for slot, instant in enumerate(instants):
                time.sleep(max(0, instant - time.monotonic_ns()) / 1e9)
                readings.append(self._read())
                self._keep_on_cpus([turn for turn in turns if turn.slot == slot])
        return readings

    def _read(self) -> Reading:
        begin = time.monotonic_ns()
        counters = {arm: self._counters(arm) for arm in self.running_instances}
        return Reading(begin, time.monotonic_ns(), counters)

    def _counters(self, arm: Arm) -> tuple[int | None, int | None]:
        running = self.running_instances[arm]
        read = None if arm in self.errors else self._guarded(arm, lambda: (running.cpu_ns(), running.daemon_cpu_ns()))
        return read or (None, None)

    def _keep_on_cpus(self, turns: Sequence[PlannedSlice]) -> None:
        for turn in turns:
            if turn.cpu is not None:
                running = self.running_instances[turn.arm]
                self._guarded(turn.arm, partial(running.keep_on, [running.instance.spec.resources.cpus[turn.cpu]]))

    def release(self) -> None:
        """Let all instances run on all of their CPUs again."""
        for arm, running in self.running_instances.items():
            self._guarded(arm, partial(running.keep_on, running.instance.spec.resources.cpus))

    def collect(self, arm: Arm, turns: Sequence[PlannedSlice], readings: Sequence[Reading]) -> Sliced:
        """Read one agent's results; an error where it failed."""
        sliced = None if arm in self.errors else self._guarded(arm, partial(self._own_result, arm, turns, readings))
        return sliced or Sliced(error=self.errors[arm])

    def _own_result(self, arm: Arm, turns: Sequence[PlannedSlice], readings: Sequence[Reading]) -> Sliced:
        shares = []
        for turn in turns:
            if turn.arm == arm:
                begun, ended = readings[turn.slot], readings[turn.slot + 1]
                used = [spent(*pair) for pair in zip(begun.cpu_ns[arm], ended.cpu_ns[arm], strict=True)]
                shares.append(CpuShare(turn, begun.end_ns, ended.begin_ns, *used))
        before, after = self.offsets[arm], self.running_instances[arm].session.sync_clock(inside_clock.EXCHANGES)
        on_host = inside_clock.on_host(before, after)
        result = self.probes[arm].wait(time_limit_s=GRACE_S + self._behind_s(before, on_host, turns))
        if shares:
            result = replace(result, slices=result.slices[:-1])  # without the closing slice
        sliced = read_result(self.workload, result, shares, on_host)
        return replace(sliced, clock=inside_clock.compared(before, after))

    def _behind_s(self, before: ClockOffset, on_host: Callable[[int], int], turns: Sequence[PlannedSlice]) -> float:
        """Return the seconds that a slow clock inside adds to the slices, at most their planned length."""
        if not turns:
            return 0.0
        over_ns = self._over_ns(turns)
        behind_ns = on_host(before.to_agent(over_ns)) - over_ns
        return max(0, min(behind_ns, over_ns - turns[0].start_ns)) / 1e9


@contextlib.contextmanager
def promptly() -> Iterator[None]:
    """Give this thread real-time priority, so that busy neighbours do not delay its readings into the next slice.

    It sleeps except for the readings, which are in the gaps. Without effect where the kernel does not permit it.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _as_unsupported(error: Exception) -> Exception:
    """Return the agent's refusal for lack of support in its platform as `UnsupportedError`.

    Other errors as they are.
    """
    return UnsupportedError(error.what) if isinstance(error, Refused) and error.code == UNSUPPORTED else error


def lead_of(offsets: Iterable[ClockOffset]) -> int:
    """Return the lead of the agents' orders over the first slice, in ns: more where answers take long."""
    round_trips = (2 * offset.uncertainty_ns for offset in offsets)
    return min(MAX_LEAD_NS, LEAD_NS + LEAD_ROUND_TRIPS * max(round_trips, default=0))


def read_result(
    workload: SliceWorkload, result: ProbeResult, shares: Sequence[CpuShare], on_host: Callable[[int], int]
) -> Sliced:
    """Join what the agent reports with the host's readings (CPU time of the instance and its daemons, by turn).

    ``on_host``: converts an instant of the agent's clock to the host's.

    A slice that began before the reading ahead of it was complete, or ended after the next reading had begun (the host
    or the slice was late), has a wall time and no CPU time. Raises `ParseError` when the agent did not run the planned
    slices or when its clock is too coarse for them, and `TooLateError` when all of them came too late.
    """
    if len(shares) != len(result.slices):
        raise ParseError(f"{len(shares)} slices were planned, the agent reports {len(result.slices)}")
    planned = [(done, share.turn.slice_ns) for done, share in zip(result.slices, shares, strict=True)]
    if all(_missed(done, slice_ns) for done, slice_ns in planned):
        raise TooLateError(f"all of its {len(shares)} slices came too late")
    tick_ns = tick(result)
    # Some probes work in rounds, which a slow platform ends long after the slice was to end.
    longest_ns = max(max(slice_ns, done.end_ns - done.start_ns) for done, slice_ns in planned)
    if tick_ns > COARSEST * longest_ns:
        raise ParseError(f"the clock inside ticks every {tick_ns / 1e6:g} ms: too coarse for slices of such a length")
    samples: list[Sample] = []
    facts: list[SliceFacts] = []
    for share, done in zip(shares, result.slices, strict=True):
        turn, start_ns = share.turn, on_host(done.start_ns)
        cpu = share.cpu_ns if share.holds(start_ns, on_host(done.end_ns)) else None
        wall_ns = done.end_ns - done.start_ns
        late_ns = start_ns - turn.start_ns
        # A slice so late that its time was over, or too short for all parts, is in the facts and gives no figure.
        idle = any(part.work <= 0 or part.wall_ns <= 0 for part in done.parts.values())
        if wall_ns > 0 and not (idle and 2 * wall_ns < longest_ns):
            parts: dict[str, tuple[float, int]] = {name: (part.work, part.wall_ns) for name, part in done.parts.items()}
            figures = workload.read_slice(parts, cpu if turn.costed else None)
            samples += [Sample(name, value, turn.round) for name, value in figures.items()]
        facts.append(SliceFacts(turn.round, turn.position, start_ns, wall_ns, cpu, share.daemon_cpu_ns, late_ns))
    if not samples:
        raise ParseError(f"none of its {len(shares)} slices had time for all of its parts")
    cpu_ns = total_ns(share.cpu_ns for share in shares)
    daemon_cpu_ns = total_ns(share.daemon_cpu_ns for share in shares)
    work = sum(part.work for done in result.slices for part in done.parts.values()) / workload.work_scale
    return Sliced(checked(workload, samples), tuple(facts), cpu_ns, daemon_cpu_ns, work)


def _missed(done: ProbeSlice, slice_ns: int) -> bool:
    """Return True if a slice began so late that nothing was done in it."""
    return not any(part.work > 0 for part in done.parts.values()) and 2 * (done.end_ns - done.start_ns) < slice_ns


def tick(result: ProbeResult) -> int:
    """Return the step of the agent's clock, in ns: the greatest common divisor of its readings; 0: too few to say."""
    readings = [instant for done in result.slices for instant in (done.start_ns, done.end_ns)]
    return math.gcd(*(reading - readings[0] for reading in readings)) if len(readings) >= MIN_READINGS else 0


def spent(before: int | None, after: int | None) -> int | None:
    """CPU time between two readings of a counter; None where it could not be read."""
    return None if before is None or after is None else after - before
