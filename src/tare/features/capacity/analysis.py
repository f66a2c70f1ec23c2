"""How many instances of each platform fit on the host, what runs out first, and what to reserve: from fills.

The unit is a fill: every one begins with fresh instances. Memory is what `tare.capacity_model.memory_used` has: the
fall of MemAvailable without other processes' growth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tare.capacity_model import (
    Fill,
    FillLevel,
    Resource,
    Stop,
    cpus_used,
    host_objects,
    kept,
    kernel_memory,
    memory_gone,
    memory_used,
    tables_beyond,
)
from tare.estimates.intervals import MIN_BLOCKS, Floats, half_width
from tare.estimates.knees import knee
from tare.estimates.use_lines import LEVEL, Fits, UseCurve, UseLine, amount, fits, line, mean_line, tangents

#: What is said of a tail: of instances' memory and CPU time, and of starts.
TAIL = 0.99
#: Reserves are rounded up to these, in bytes and in CPUs.
MEMORY_STEP, CPU_STEP = 4 << 10, 0.001
#: A prediction is made from levels up to this share of what a fill held, and from so many beside the first at least.
SHARE, LEVELS = 0.25, 4
#: The line of memory is drawn through the last levels, if there are so many of them.
LATE = 3
#: Ends of a fill that tell how many fit.
_ENDS = frozenset({Stop.FULL, Stop.LIMIT, Stop.START})
#: The share of a fall that is explained is said where it is known to this much of what the instances take, each way.
KNOWN = 0.1
#: What is only kept free, and predicted from no line: others' files come and go meanwhile.
_GUARDED = frozenset({Resource.DISK})


@dataclass(frozen=True, slots=True)
class ResourceFit:
    """How many a resource holds: its use is ``once`` and ``each``, of ``most`` of which ``kept_back`` stay free."""

    resource: Resource
    lines: tuple[UseLine, ...]  # by fill
    most: float
    kept_back: float
    fits: Fits
    curves: tuple[UseCurve, ...] = ()  # by fill, where its use is no line: ``lines`` are tangents at `fits`

    def lines_at(self, most: float) -> tuple[UseLine, ...]:
        """Lines for another amount of it, which its use follows there."""
        return tangents(self.curves, most) if self.curves else self.lines

    def taken_by(self, count: float) -> float:
        """The upper end of what so many take: 90 % over fills."""
        curves = self.curves or [UseCurve(each, lambda _: (0.0, 0.0)) for each in self.lines]
        taken = [curve.tangent(count).at(count) for curve in curves]
        interval = amount(taken)
        return taken[0] if interval is None else interval.high

    @property
    def line(self) -> UseLine:
        """The mean over fills, as far as it is a line."""
        return mean_line([curve.line for curve in self.curves] or self.lines)

    @property
    def known(self) -> bool:
        """Whether each instance surely takes of it."""
        return math.isfinite(self.fits.count) and (self.fits.high is None or math.isfinite(self.fits.high))


@dataclass(frozen=True, slots=True)
class MemoryParts:
    """Where the host's memory went at the last level, in bytes for each instance; means over fills."""

    own: float  # pages of the instances' processes that no file gives back
    shared: float  # their part of pages that files give back: programs and libraries (PSS)
    kernel: float  # objects that cannot be reclaimed, page tables, stacks, and what each CPU has
    engine: float  # growth of the daemons
    unexplained: float  # of the fall of MemAvailable, without other processes: what is none of these but ``shared``
    unexplained_half: float | None  # half of its 90 % interval; None: neither fills nor levels show one
    explained: float | None  # share of that fall that these explain; None where it is not known to `KNOWN`
    others: float  # bytes, once: growth of other processes meanwhile, tare's own among them


@dataclass(frozen=True, slots=True)
class Reserve:
    """What one instance takes beside its workload, at the tail of instances: bytes and CPUs; threads on the host."""

    memory: int
    cpu: float
    tasks: int
    workload_memory: float  # that was taken off: what the same idle program takes on the baseline


@dataclass(frozen=True, slots=True)
class LevelUse:
    """A level, as the mean of the fills that have it; of memory the mean of all that came so far (`_memory_at`)."""

    count: int
    memory: float  # bytes that the instances take together
    cpu: float  # CPUs that they use together, daemons included
    start_ms: float | None  # the median of the starts up to it from the level before
    kept: float | None  # share of its work alone that a working instance has; None: none was put to work
    late_ms: float | None  # how much later than it was to a working instance began, the median


@dataclass(frozen=True, slots=True)
class FillFacts:
    """What real fills held."""

    count: float  # the mean of `reached`
    least: int
    most: int
    n_fills: int


@dataclass(frozen=True, slots=True)
class PlatformCapacity:
    """One platform on this host."""

    platform: str
    n_fills: int
    most_run: int  # instances that ran at once, at most
    first: ResourceFit | None  # what runs out first; None: nothing of what is counted
    resources: tuple[ResourceFit, ...]
    memory: MemoryParts
    reserve: Reserve | None  # None: the baseline, or the host's noise hides it
    starts_ms: tuple[float, float]  # the median, and the tail
    levels: tuple[LevelUse, ...]
    knee: float | None  # instances beyond which more of them do less and less more work together; None: not shown
    filled: FillFacts | None
    stops: tuple[tuple[Stop, str], ...]  # why each fill ended
    baseline: bool  # it shows what a workload takes without a sandbox, and is never filled

    @property
    def hidden(self) -> bool:
        """Whether the host's other work hides what memory one takes, and so how many fit."""
        return not self.resources[0].known and self.filled is None

    @property
    def counts(self) -> bool:
        """Whether it is known how many fit."""
        return not (self.baseline or self.hidden)


def capacities(fills: Mapping[str, Sequence[Fill]], baseline: str) -> list[PlatformCapacity]:
    """A `PlatformCapacity` for each platform that has a fill with instances.

    ``fills``: by platform, in the order of blocks.
    """
    whole = {name: [fill for fill in of if len(fill.levels) > 1] for name, of in fills.items()}
    whole = {name: of for name, of in whole.items() if of}
    rooms = [room(fill) for of in whole.values() for fill in of]
    workload = _charged(whole[baseline]) if baseline in whole else None
    return [
        _capacity(name, of, float(np.mean(rooms)), workload, sandbox=name != baseline) for name, of in whole.items()
    ]


def room(fill: Fill) -> float:
    """The memory that the instances of a fill may take, in bytes: the budget, or what was available but the reserve.

    Free pages in CPUs' lists, which MemAvailable does not have, are used up before the host is full.
    """
    before = fill.levels[0]
    return float(fill.budget or max(0, before.available + before.cpu_lists - fill.memory_reserve))


def quarter(fill: Fill) -> list[FillLevel]:
    """The levels that a prediction is made from: of a fill to the end those that a trial without ``--fill`` has.

    So what a fill predicts and what it held can be set side by side.
    """
    if fill.stop not in _ENDS:
        return fill.levels
    most = fill.quarter or max(fill.held * SHARE, fill.levels[min(LEVELS, len(fill.levels) - 1)].count)
    return [level for level in fill.levels if level.count <= most]


def _capacity(
    platform: str, fills: Sequence[Fill], memory_room: float, workload: _Charged | None, *, sandbox: bool
) -> PlatformCapacity:
    found = [_memory(fills, memory_room), _cpu(fills), *_counted(fills)]
    known = [entry for entry in found if entry.known]
    first = min(known, key=lambda entry: entry.fits.count, default=None)
    starts = [start for fill in fills for level in fill.levels for start in level.starts_ms]
    return PlatformCapacity(
        platform=platform,
        n_fills=len(fills),
        most_run=max(fill.levels[-1].count for fill in fills),
        first=first,
        resources=tuple(found),
        memory=_parts(fills),
        reserve=_reserve(fills, found, workload) if sandbox else None,
        starts_ms=(float(np.median(starts)), float(np.quantile(starts, TAIL))),
        levels=_levels(fills),
        knee=_knee(fills),
        filled=_filled(fills),
        stops=tuple((fill.stop, fill.reason) for fill in fills),
        baseline=not sandbox,
    )


def _memory(fills: Sequence[Fill], memory_room: float) -> ResourceFit:
    curves = tuple(map(memory_curve, fills))
    lines = tangents(curves, memory_room)
    kept = 0.0 if fills[0].budget else float(fills[0].memory_reserve)
    return ResourceFit(Resource.MEMORY, lines, memory_room + kept, kept, fits(lines, memory_room), curves)


def memory_curve(fill: Fill) -> UseCurve:
    """The memory that instances take: a line, and tables of control groups, which grow faster than their number."""
    before, *levels = quarter(fill)
    groups, mounted = ([getattr(level, name) for level in levels] for name in ("groups", "filesystems"))
    counts = [level.count for level in levels]
    of_groups, of_mounted = line(counts, groups), line(counts, mounted)

    def tables(count: float) -> float:
        return tables_beyond(fill, of_groups.at(count), of_mounted.at(count))

    def beyond(count: float) -> tuple[float, float]:
        return tables(count), tables(count + 0.5) - tables(max(0.0, count - 0.5))

    levels = _late(levels)
    counts = [level.count for level in levels]
    more = [tables(level.count) for level in levels]
    grown = [host_objects(before, level) for level in levels]
    objects = line(counts, [all_of_them - those for all_of_them, those in zip(grown, more, strict=True)])
    rest = line(counts, [memory_used(before, level) - of for level, of in zip(levels, grown, strict=True)])
    # No instance gives memory back: what others freed meanwhile is not its own.
    return UseCurve(UseLine(rest.once + objects.once, rest.each + max(0.0, objects.each)), beyond)


def _late(levels: list[FillLevel]) -> list[FillLevel]:
    """Return the levels with at least a quarter of the last one's instances, if there are `LATE` of them.

    The first instances' objects go into room that no file of the kernel shows, in slabs that a CPU has at hand, so
    that a line through them is too flat.
    """
    late = [level for level in levels if level.count >= SHARE * levels[-1].count]
    return late if len(late) >= LATE else levels


def _cpu(fills: Sequence[Fill]) -> ResourceFit:
    lines = []
    for fill in fills:
        # Of instances that share CPUs it does not show what one alone would use.
        levels = [level for level in quarter(fill) if level.working <= fill.cpus]
        lines.append(line([level.count for level in levels], [cpus_used(level, fill.active) for level in levels]))
    cpus = fills[0].cpus / (fills[0].keep or 1.0)
    return ResourceFit(Resource.CPU, tuple(lines), cpus, 0.0, fits(lines, cpus))


def _counted(fills: Sequence[Fill]) -> list[ResourceFit]:
    """What comes in pieces, as far as all fills have counted it."""
    found = []
    for resource in Resource:
        if resource in _GUARDED or not all(resource in fill.most for fill in fills):
            continue
        lines = [
            line([level.count for level in levels], [level.used.get(resource, 0) for level in levels])
            for levels in map(quarter, fills)
        ]
        most = min(fill.most[resource] for fill in fills)
        kept = max(fill.kept_back.get(resource, 0) for fill in fills)
        found.append(ResourceFit(resource, tuple(lines), most, kept, fits(lines, most - kept)))
    return found


def _parts(fills: Sequence[Fill]) -> MemoryParts:
    own, shared, kernel, engine, rest, others = np.array([_parts_of(fill) for fill in fills]).mean(axis=0).tolist()
    taken, half = own + kernel + engine, _rest_half(fills)
    known = half is not None and taken + rest > 0 and half <= KNOWN * taken
    return MemoryParts(own, shared, kernel, engine, rest, half, taken / (taken + rest) if known else None, others)


def _parts_of(fill: Fill) -> tuple[float, ...]:
    before, last = fill.levels[0], fill.levels[-1]
    gone, used = memory_gone(before, last), memory_used(before, last)
    parts = (
        last.instances,
        max(0, last.instances_pss - last.instances),
        kernel_memory(before, last),
        last.engine - before.engine,
        gone - used,
    )
    return (*(part / last.count for part in parts), float(before.available - last.available - gone))


def _rest_half(fills: Sequence[Fill]) -> float | None:
    """Half of the interval of what is not explained, for each instance: the host's own moves of MemAvailable.

    From the fills where there are two, otherwise from how the levels of the only one scatter about their line.
    """
    rests = [
        [memory_gone(fill.levels[0], level) - memory_used(fill.levels[0], level) for level in fill.levels[1:]]
        for fill in fills
    ]
    if len(fills) >= MIN_BLOCKS:
        found = amount([rest[-1] / fill.levels[-1].count for rest, fill in zip(rests, fills, strict=True)])
        return None if found is None else found.half_width
    [rest], counts = rests, [level.count for level in fills[0].levels[1:]]
    free = len(rest) - 2
    if free < 1:
        return None
    fitted = line(counts, rest)
    squares = sum((value - fitted.at(count)) ** 2 for value, count in zip(rest, counts, strict=True))
    # The difference of two readings, the last and the one without an instance.
    return half_width(math.sqrt(2 * squares / free), free, LEVEL) / counts[-1]


@dataclass(frozen=True, slots=True)
class _Charged:
    """What instances have for themselves: bytes and CPUs, by instance over all fills."""

    memory: Floats
    cpu: Floats


def _charged(fills: Sequence[Fill]) -> _Charged:
    memory = [own + kernel for fill in fills for own, kernel in zip(fill.own, fill.kernel, strict=True)]
    return _Charged(np.array(memory, dtype=float), np.array([share for fill in fills for share in fill.cpu_shares]))


def _reserve(fills: Sequence[Fill], found: Sequence[ResourceFit], workload: _Charged | None) -> Reserve | None:
    """What to reserve for an instance: its part of all that the host lacks when it is full, at the tail of instances.

    That part is the room by the lower end of how many fit, so that all reserves together are not less than what is
    taken. Where something else runs out first, it is the upper end of what is taken then, by how many there are. Where
    the host was filled to the end, it is what one took there, of the fill that took most. The tail is what one instance
    has more for itself than the mean.
    """
    memory, cpu = found[0], found[1]
    fitting = memory.fits.low if memory.fits.low is not None else memory.fits.count
    if not (memory.known and fitting > 0):
        return None
    charged = _charged(fills)
    tail = float(np.quantile(charged.memory, TAIL) - charged.memory.mean())
    tail_cpu = float(np.quantile(charged.cpu, TAIL) - charged.cpu.mean())
    less = 0.0 if workload is None else float(workload.memory.mean())
    less_cpu = 0.0 if workload is None else float(workload.cpu.mean())
    filled = [fill for fill in fills if fill.stop in _ENDS]
    full = min(entry.fits.count for entry in found if entry.known)  # by what runs out first
    if full <= 0 and not filled:  # something is used up without an instance
        return None
    taken = memory.most - memory.kept_back if full >= fitting else memory.taken_by(full)
    each = max(map(_each_at_the_end, filled)) if filled else taken / min(full, fitting)
    bytes_each = each + tail - less
    tasks = next((entry.line.each for entry in found if entry.resource is Resource.TASKS), 0.0)
    return Reserve(
        memory=max(MEMORY_STEP, math.ceil(bytes_each / MEMORY_STEP) * MEMORY_STEP),
        cpu=max(CPU_STEP, math.ceil((cpu.line.each + tail_cpu - less_cpu) / CPU_STEP) * CPU_STEP),
        tasks=max(0, math.ceil(tasks)),
        workload_memory=less,
    )


def _each_at_the_end(fill: Fill) -> float:
    """What one takes when the host is full: the upper end, 90 %, of the line through the last levels there.

    One level alone is moved by what others do at that moment. The fall of MemAvailable without other processes' growth
    counts instead where it is larger and known to `KNOWN`: a node lacks what the parts do not explain, too.
    """
    before, *levels = fill.levels
    levels = _late(levels)
    counts, last = [level.count for level in levels], levels[-1].count
    used, half = _at_the_end(counts, [memory_used(before, level) for level in levels])
    gone, unsure = _at_the_end(counts, [memory_gone(before, level) for level in levels])
    return max(used + half, gone if 0 < unsure <= KNOWN * used else 0.0) / last


def _at_the_end(counts: Sequence[int], values: Sequence[float]) -> tuple[float, float]:
    """The line's value at the last level, and half of its 90 % interval; without that, the larger of line and level."""
    fitted, free, last = line(counts, values), len(counts) - 2, counts[-1]
    if free < LATE:
        return max(values[-1], fitted.at(last)), 0.0
    squares = sum((value - fitted.at(count)) ** 2 for value, count in zip(values, counts, strict=True))
    mean = sum(counts) / len(counts)
    leverage = 1 / len(counts) + (last - mean) ** 2 / sum((count - mean) ** 2 for count in counts)
    return fitted.at(last), half_width(math.sqrt(squares / free * leverage), free, LEVEL)


def _levels(fills: Sequence[Fill]) -> tuple[LevelUse, ...]:
    by_count: dict[int, list[tuple[Fill, FillLevel]]] = {}
    for fill in fills:
        for level in fill.levels[1:]:
            by_count.setdefault(level.count, []).append((fill, level))
    return tuple(
        LevelUse(
            count,
            _memory_at(fills, count),
            float(np.mean([cpus_used(level, fill.active) for fill, level in pairs])),
            _median([start for _, level in pairs for start in level.starts_ms]),
            _mean([had for fill, level in pairs if (had := kept(fill.levels, level)) is not None]),
            _median([late for _, level in pairs for late in level.late_ms]),
        )
        for count, pairs in sorted(by_count.items())
    )


def _memory_at(fills: Sequence[Fill], count: int) -> float:
    """The memory that so many instances take, by the mean over the fills that came so far: between levels by a line."""
    used = []
    for fill in fills:
        before, *levels = fill.levels
        if levels[-1].count >= count:
            ends = [level.count for level in levels], [memory_used(before, level) for level in levels]
            used.append(float(np.interp(count, *ends)))
    return float(np.mean(used))


def _knee(fills: Sequence[Fill]) -> float | None:
    """The knee of the work of all working instances over the number of instances, by the mean over fills."""
    sums: dict[int, list[float]] = {}
    for level in (level for fill in fills for level in fill.levels if level.working):
        sums.setdefault(level.count, []).append(sum(level.rates))
    counts = sorted(sums)
    found = knee(np.array(counts, dtype=float), np.array([float(np.mean(sums[count])) for count in counts]))
    return None if math.isnan(found) else found


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def _filled(fills: Sequence[Fill]) -> FillFacts | None:
    """What the fills held that went on until something broke; None where they ended at a quarter."""
    held = [fill.held for fill in fills if fill.stop in _ENDS]
    if len(held) < len(fills):
        return None
    return FillFacts(float(np.mean([reached(fill) for fill in fills])), min(held), max(held), len(held))


def reached(fill: Fill) -> float:
    """How many a fill held: where a budget was crossed, between its last two levels; else the last level that held."""
    if fill.budget is None or fill.resource is not Resource.MEMORY or fill.held == fill.levels[-1].count:
        return float(fill.held)
    before, (below, beyond) = fill.levels[0], fill.levels[-2:]
    counts, used = (below.count, beyond.count), [memory_used(before, level) for level in (below, beyond)]
    return float(np.interp(fill.budget, used, counts))
