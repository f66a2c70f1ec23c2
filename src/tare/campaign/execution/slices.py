"""All live instances in turn: short self-paced slices on the same CPUs, in random order in each round.

The host gives every agent the instants of its slices beforehand and then only wakes between slices to read the
control groups' CPU time, so that neither the driving stream nor the harness is part of what is measured (METHOD,
trap 3).
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

from tare.campaign.instances.launcher import RunningInstance
from tare.campaign.plan.schedule import Stage
from tare.errors import Failed, ParseError, UnsupportedError, attempt
from tare.model import Arm, Sample, SliceFacts
from tare.session import MAX_SLICES, ClockOffset, Probe, ProbeResult, Refused
from tare.workloads.base import Params, SliceWorkload
from tare.workloads.contract import checked

T = TypeVar("T")

#: Idle time between two slices: the one before may end late, and the host reads the counters in the middle.
GAP_NS = 10_000_000
#: From the last agent's being told to the first slice.
LEAD_NS = 100_000_000
#: Longest time for a probe to allocate what it needs, beyond its warm-up.
WARM_LIMIT_S = 20.0
#: A clock that ticks in steps longer than this share of a slice makes figures of its own (METHOD, trap 1); told from
#: chance by so many readings.
COARSEST, MIN_READINGS = 0.002, 6
#: The agent's word for what its platform does not have.
UNSUPPORTED = "unsupported"
#: What the host waits beyond the last planned instant for the agents' answers.
GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Turn:
    """One planned slice of one arm; on the host's monotonic clock."""

    round: int
    position: int
    arm: Arm
    start_ns: int
    slot: int  # turns of one slot run at once
    cpu: int | None = None  # place in the instances' CPUs of the one that it is kept on; None: wherever they may run


@dataclass(frozen=True, slots=True)
class Sliced:
    """What one arm's slices gave, or the reason why they gave nothing."""

    samples: tuple[Sample, ...] = ()
    slices: tuple[SliceFacts, ...] = ()
    cpu_ns: int | None = None
    daemon_cpu_ns: int | None = None
    work: float = 0.0  # of all slices, in the workload's units
    error: Exception | None = None


def plan_turns(
    rounds: Sequence[Sequence[Arm]],
    first_ns: int,
    slice_ns: int,
    *,
    gap_ns: int = GAP_NS,
    at_once: bool = False,
    own_cpus: bool = True,
) -> list[Turn]:
    """Lay the rounds out in time: a slice, a gap, the next slice.

    ``at_once``: a round is one slice of all its arms; with ``own_cpus`` each is kept on another CPU.
    """
    turns: list[Turn] = []
    slot = 0
    for number, order in enumerate(rounds):
        for position, arm in enumerate(order):
            start = first_ns + slot * (slice_ns + gap_ns)
            turns.append(Turn(number, position, arm, start, slot, position if at_once and own_cpus else None))
            slot += not at_once
        slot += at_once
    return turns


def run_slices(
    workload: SliceWorkload,
    params: Params,
    stage: Stage,
    running_instances: Mapping[Arm, RunningInstance],
    extra: Mapping[str, Params] = MappingProxyType({}),
) -> dict[Arm, Sliced]:
    """Run one stage in all live instances. An instance that fails does not disturb the others.

    ``extra``: more parameters of the probe, by platform. A probe takes at most `MAX_SLICES`: where an arm has more,
    which the baseline of a duet with many platforms has, the rounds are run in several parts, each with new probes.
    """
    sliced: dict[Arm, Sliced] = {}
    first = 0
    for rounds in in_parts(stage.rounds):
        arms = {arm for order in rounds for arm in order}
        sound = {
            arm: running for arm, running in running_instances.items() if arm in arms and not _failed(sliced.get(arm))
        }
        part = _run_part(_Phase(workload, params, sound, extra), stage, rounds)
        sliced |= {arm: _joined(sliced.get(arm), arm_result, first) for arm, arm_result in part.items()}
        first += len(rounds)
    return {arm: sliced.get(arm, Sliced(error=ParseError("it had no slices"))) for arm in running_instances}


def in_parts(rounds: Sequence[Sequence[Arm]]) -> list[Sequence[Sequence[Arm]]]:
    """The rounds in as few parts of one size as there must be for no arm to have more than `MAX_SLICES` in one."""
    parts = math.ceil(_most_slices(rounds) / MAX_SLICES)
    while True:
        size = max(1, math.ceil(len(rounds) / max(1, parts)))
        split = [rounds[at : at + size] for at in range(0, len(rounds), size)]
        if all(_most_slices(part) <= MAX_SLICES for part in split):
            return split
        parts += 1


def _most_slices(rounds: Sequence[Sequence[Arm]]) -> int:
    """Of any arm, the closing one with them."""
    return 1 + max(Counter(arm for order in rounds for arm in order).values(), default=0)


def _run_part(phase: _Phase, stage: Stage, rounds: Sequence[Sequence[Arm]]) -> dict[Arm, Sliced]:
    phase.warm_up()
    turns = phase.begin(rounds, at_once=stage.at_once, own_cpus=stage.own_cpus)
    readings = phase.watch(turns)
    if stage.at_once and stage.own_cpus:
        phase.release()
    return {arm: phase.collect(arm, turns, readings) for arm in phase.running_instances}


def _failed(sliced: Sliced | None) -> bool:
    return sliced is not None and sliced.error is not None


def _joined(before: Sliced | None, after: Sliced, first: int) -> Sliced:
    """The slices of one arm in two parts as those of one; the second part begins with round ``first``."""
    if before is None or after.error is not None:
        return after
    return Sliced(
        (*before.samples, *(replace(sample, round=first + sample.round) for sample in after.samples)),
        (*before.slices, *(replace(facts, round=first + facts.round) for facts in after.slices)),
        _total((before.cpu_ns, after.cpu_ns)),
        _total((before.daemon_cpu_ns, after.daemon_cpu_ns)),
        before.work + after.work,
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """All counters at one gap; on the host's monotonic clock, from the first of them to the last."""

    begin_ns: int
    end_ns: int
    cpu_ns: Mapping[Arm, tuple[int | None, int | None]]  # of the instance, and of its daemons


@dataclass(frozen=True, slots=True)
class Share:
    """What the counters say of one turn, and between which instants."""

    turn: Turn
    after_ns: int  # the reading before it was over by then
    before_ns: int  # and the one after it began then
    cpu_ns: int | None
    daemon_cpu_ns: int | None

    def holds(self, start_ns: int, end_ns: int) -> bool:
        """Whether the slice lies wholly between the readings: else a part of its CPU time is in another's share."""
        return self.after_ns <= start_ns and end_ns <= self.before_ns


@dataclass(slots=True)
class _Phase:
    """One stage under way."""

    workload: SliceWorkload
    params: Params
    running_instances: Mapping[Arm, RunningInstance]
    extra: Mapping[str, Params]
    offsets: dict[Arm, ClockOffset] = field(default_factory=dict)
    probes: dict[Arm, Probe] = field(default_factory=dict)
    errors: dict[Arm, Exception] = field(default_factory=dict)  # the first of each

    @property
    def slice_ns(self) -> int:
        return int(float(self.params["slice_ms"]) * 1e6)

    @property
    def gap_ns(self) -> int:
        """At least the usual: most workloads' slices end in time."""
        return max(GAP_NS, int(self.workload.gap_ms * 1e6))

    @property
    def warmup_ns(self) -> int:
        return int(float(self.params["warmup_ms"]) * 1e6)

    def warm_up(self) -> None:
        """Let every probe allocate and warm up, one after the other: together they would size each other's chunks."""
        for arm in self.running_instances:
            self._guarded(arm, partial(self._warm, arm))

    def _warm(self, arm: Arm) -> None:
        running = self.running_instances[arm]
        fitted = self.workload.fitted(self.params, running.instance.spec.resources.memory_bytes)
        probe_params = self.workload.probe_params(fitted)
        more = self.extra.get(arm.platform, {})
        probe = running.session.probe(self.workload.probe, {**probe_params, **more}, self.warmup_ns)
        probe.wait_ready(time_limit_s=WARM_LIMIT_S + self.warmup_ns / 1e9)
        # Only now: its clock is read while nothing else runs on its CPUs.
        self.offsets[arm] = running.session.sync_clock()
        self.probes[arm] = probe

    def _guarded(self, arm: Arm, task: Callable[[], T]) -> T | None:
        """Do something for one arm: what it fails for is its own, and no other's. None when it did."""
        result = attempt(task)
        if isinstance(result, Failed):
            self.errors.setdefault(arm, _as_unsupported(result.error))
            return None
        return result

    def begin(self, rounds: Sequence[Sequence[Arm]], *, at_once: bool, own_cpus: bool) -> list[Turn]:
        """Tell every agent its slices, and one of no length after everybody's last.

        After its last slice a probe checks what it computed, and frees its memory: STREAM goes through all of its
        arrays. Without the closing slice that is in the others' last round.
        """
        ready = [[arm for arm in order if arm in self.probes] for order in rounds]
        if at_once:  # who lost the partner runs no duet
            ready = [order for order, all_of in zip(ready, rounds, strict=True) if len(order) == len(all_of)]
        first_ns = time.monotonic_ns() + LEAD_NS
        turns = plan_turns(ready, first_ns, self.slice_ns, gap_ns=self.gap_ns, at_once=at_once, own_cpus=own_cpus)
        for arm, probe in self.probes.items():
            offset = self.offsets[arm]
            own_slices = [(offset.to_agent(turn.start_ns), self.slice_ns) for turn in turns if turn.arm == arm]
            closing = [(offset.to_agent(self._over_ns(turns)), 0)] if own_slices else []
            self._guarded(arm, partial(probe.begin, [*own_slices, *closing]))
        return turns

    def _over_ns(self, turns: Sequence[Turn]) -> int:
        """When the last turn and its gap are over."""
        return turns[-1].start_ns + self.slice_ns + self.gap_ns

    def watch(self, turns: Sequence[Turn]) -> list[Reading]:
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

    def _keep_on_cpus(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            if turn.cpu is not None:
                running = self.running_instances[turn.arm]
                self._guarded(turn.arm, partial(running.keep_on, [running.instance.spec.resources.cpus[turn.cpu]]))

    def release(self) -> None:
        """Let all run wherever they may again."""
        for arm, running in self.running_instances.items():
            self._guarded(arm, partial(running.keep_on, running.instance.spec.resources.cpus))

    def collect(self, arm: Arm, turns: Sequence[Turn], readings: Sequence[Reading]) -> Sliced:
        """Take in what an agent has to say."""
        sliced = None if arm in self.errors else self._guarded(arm, partial(self._own_result, arm, turns, readings))
        return sliced or Sliced(error=self.errors[arm])

    def _own_result(self, arm: Arm, turns: Sequence[Turn], readings: Sequence[Reading]) -> Sliced:
        shares = []
        for turn in turns:
            if turn.arm == arm:
                before, after = readings[turn.slot], readings[turn.slot + 1]
                used = [spent(*pair) for pair in zip(before.cpu_ns[arm], after.cpu_ns[arm], strict=True)]
                shares.append(Share(turn, before.end_ns, after.begin_ns, *used))
        result = self.probes[arm].wait(time_limit_s=GRACE_S)
        if shares:
            result = replace(result, slices=result.slices[:-1])  # without the closing one
        return read_result(self.workload, result, shares, self.offsets[arm].offset_ns)


@contextlib.contextmanager
def promptly() -> Iterator[None]:
    """Wake this thread in time beside busy neighbours: a reading that comes late takes the CPU time of two slices.

    It sleeps but for the readings, in the gaps. Where the kernel does not allow it, it goes on as it is.
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
    """What the platform has no means for is no fault of the session."""
    return UnsupportedError(error.what) if isinstance(error, Refused) and error.code == UNSUPPORTED else error


def read_result(workload: SliceWorkload, result: ProbeResult, shares: Sequence[Share], offset_ns: int) -> Sliced:
    """Put what the agent says beside what the host read (CPU time of instance and daemons, by turn).

    A slice that began before the reading ahead of it was done, or ended after the next had begun (the host was late, or
    the slice was), has a wall time and no CPU time. Raises `ParseError` when the agent did not do as planned.
    """
    if len(shares) != len(result.slices):
        raise ParseError(f"{len(shares)} slices were planned, the agent reports {len(result.slices)}")
    tick_ns = tick(result)
    longest = max((done.end_ns - done.start_ns for done in result.slices), default=0)
    if tick_ns > COARSEST * longest:
        raise ParseError(f"the clock inside ticks every {tick_ns / 1e6:g} ms: too coarse for slices of such a length")
    samples: list[Sample] = []
    facts: list[SliceFacts] = []
    for share, done in zip(shares, result.slices, strict=True):
        turn, start_ns = share.turn, done.start_ns - offset_ns
        cpu = share.cpu_ns if share.holds(start_ns, done.end_ns - offset_ns) else None
        wall_ns = done.end_ns - done.start_ns
        late_ns = start_ns - turn.start_ns
        # What came so late that its time was over, or was too short for all parts, is in the facts and gives no figure.
        idle = any(part.work <= 0 or part.wall_ns <= 0 for part in done.parts.values())
        if wall_ns > 0 and not (idle and 2 * wall_ns < longest):
            parts: dict[str, tuple[float, int]] = {name: (part.work, part.wall_ns) for name, part in done.parts.items()}
            figures = workload.read_slice(parts, cpu)
            samples += [Sample(name, value, turn.round) for name, value in figures.items()]
        facts.append(SliceFacts(turn.round, turn.position, start_ns, wall_ns, cpu, share.daemon_cpu_ns, late_ns))
    if not samples:
        raise ParseError(f"all of its {len(shares)} slices came too late")
    own, shared = _total(share.cpu_ns for share in shares), _total(share.daemon_cpu_ns for share in shares)
    work = sum(part.work for done in result.slices for part in done.parts.values()) / workload.work_scale
    return Sliced(checked(workload, samples), tuple(facts), own, shared, work)


def tick(result: ProbeResult) -> int:
    """The step in which the agent's clock went while it sliced, in ns: what divides all that it read."""
    readings = [instant for done in result.slices for instant in (done.start_ns, done.end_ns)]
    return math.gcd(*(reading - readings[0] for reading in readings)) if len(readings) >= MIN_READINGS else 0


def spent(before: int | None, after: int | None) -> int | None:
    """CPU time between two readings of a counter; None where it could not be read."""
    return None if before is None or after is None else after - before


def _total(times: Iterable[int | None]) -> int | None:
    known = [time for time in times if time is not None]
    return sum(known) if known else None
