"""Change of each figure from one campaign to another, or from one platform to another in a campaign.

A figure has regressed if it is surely worse by more than a threshold. It is fine if it is surely not. Otherwise the
outcome is open, with an estimate of the blocks that would settle it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare import lazily
from tare.analysis.comparisons.many import holm
from tare.analysis.comparisons.sides import MetricSide, Way, aligned, side_of, sides_of
from tare.analysis.comparisons.thresholds import Thresholds
from tare.analysis.contrasting import campaign_looks
from tare.analysis.grids import grid_of, metric_parts
from tare.analysis.hidden import BLOCKS_WITHOUT_SPREAD
from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.analysis.rule import LogIntervals, not_worse, side
from tare.analysis.verdicts import Question, VerdictKind
from tare.estimates.intervals import MIN_BLOCKS, POWER, Interval, half_width
from tare.estimates.looks import Spread
from tare.estimates.moderated import FigureRow
from tare.estimates.overhead import overhead_of
from tare.estimates.widths import blocks_needed
from tare.model import CPU_COST, Design, Direction
from tare.store import CampaignRecord, MetricRecord, Store, WorkloadRecord, workload_seconds

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")

#: Share of comparisons of this kind in which some regression may be found although there is none.
LEVEL = 0.05

Floats = NDArray[np.float64]


class FigureOutcome(StrEnum):
    """Outcome of a figure: worse (regression), not worse (fine), or undecided (open)."""

    REGRESSION = "regression"
    FINE = "fine"
    OPEN = "open"


def overall(outcomes: Iterable[FigureOutcome]) -> FigureOutcome:
    """Return the outcome of several figures: a regression if any is, fine if all are (and there is one), else open."""
    kinds = set(outcomes)
    if FigureOutcome.REGRESSION in kinds:
        return FigureOutcome.REGRESSION
    return FigureOutcome.FINE if kinds == {FigureOutcome.FINE} else FigureOutcome.OPEN


class Gap(StrEnum):
    """Reason why a figure could not be compared."""

    TOO_FEW_BLOCKS = "too-few-blocks"
    UNFIT = "unfit"  # Samples without a logarithm.
    NO_SPREAD = "no-spread"  # No variation, in too few blocks.


class Lack(StrEnum):
    """Reason why a workload, or one figure of it, is not compared at all."""

    OLD = "old"  # The older side lacks it.
    NEW = "new"
    PARAMETERS = "parameters"  # It ran with other parameters.
    REVISION = "revision"  # Its figures were computed otherwise.


@dataclass(frozen=True, slots=True)
class Absent:
    """A workload, or a platform's figure, that is not compared."""

    lack: Lack
    workload: str
    metric: str = ""
    platform: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a figure of counted instructions: a file of programs, a function of the kernel, or a side."""

    side: str  # User or kernel.
    place: str  # "": all of that side.
    old: float
    new: float


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure's change as a fraction; positive is worse.

    ``interval``: each end holds at 95 % for all figures of the diff at once; ``at_most``: the higher end for this
    figure alone, at 95 %; ``detectable``: the regression that nine of ten such comparisons find.
    """

    platform: str
    workload: str
    metric: str
    unit: str
    direction: Direction
    threshold: float
    old: float | None  # In the unit: the mean, or if figures themselves are compared, the mean of logarithms.
    new: float | None
    n_old: int  # Blocks.
    n_new: int
    outcome: FigureOutcome
    interval: Interval | None = None
    at_most: float | None = None
    detectable: float | None = None
    old_times: float | None = None  # How many times worse than the baseline, if that changed.
    new_times: float | None = None
    p: float | None = None  # That it is worse by no more than the threshold; adjusted by Holm for all figures.
    gap: Gap | None = None
    blocks: int | None = None  # Needed in each campaign to decide; None: decided, or unknown.
    seconds: float | None = None  # Duration of those blocks of the workload, in a campaign like the newer one.
    pieces: tuple[Piece, ...] = ()  # Of counted instructions: the parts of the change, most changed first.


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact in which the sides differ."""

    fact: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Diff:
    """All changes, the worst first, and the facts in which the sides differ. ``absent``: missing on one side."""

    way: Way
    old: str
    new: str
    baseline: str
    changes: tuple[FigureChange, ...]
    facts: tuple[Fact, ...]
    absent: tuple[Absent, ...]

    @property
    def outcome(self) -> FigureOutcome:
        """The outcome of all changes together, by `overall`."""
        return overall(change.outcome for change in self.changes)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """The change of a mean log, worse is positive, with its standard error."""

    point: float
    error: float
    df: float

    def p_beyond(self, limit: float) -> float:
        """Return the one-sided p-value of a change above ``limit``."""
        return self._tail(self.point - limit)

    def interval(self, level: float) -> Interval:
        """Return the interval of the change, as a log of how many times worse."""
        half = half_width(self.error, self.df, level)
        return Interval(self.point, self.point - half, self.point + half)

    def _tail(self, distance: float) -> float:
        if not self.error > 0:
            return 0.0 if distance > 0 else 1.0
        return float(special.stdtr(self.df, -distance / self.error))


def diff(old: Store, new: Store, thresholds: Thresholds, *, absolute: bool = False) -> Diff:
    """Compare an older campaign with a newer one: overheads, or the figures themselves if ``absolute``.

    The mean of the log by block, of each campaign, by Welch. For overheads: the log ratio to the same block's baseline,
    so that the host's activity is in both. Raises `NoAnswer` if nothing can be compared.
    """
    was, now = old.record, new.record
    way = Way.ABSOLUTE if absolute else Way.RELATIVE
    if not absolute and was.baseline != now.baseline:
        raise NoAnswer(RefusalKind.OTHER_BASELINES, old.name, was.baseline, new.name, now.baseline)
    if not absolute and Design.SEQUENTIAL in {was.design, now.design}:
        raise NoAnswer(RefusalKind.NO_BASELINE_BESIDE)
    if was.id == now.id:
        raise NoAnswer(RefusalKind.SAME_CAMPAIGN, old.name, new.name)
    samples = old.samples(), new.samples()
    old_parts, new_parts = map(metric_parts, samples)
    spreads = [{} if absolute else _spreads(record, frame) for record, frame in zip((was, now), samples, strict=True)]
    seconds = workload_seconds(new.trials())
    drafts: list[tuple[FigureChange, _Estimate | None]] = []
    absent: list[Absent] = []
    for workload, other, metric in _common(was, now, thresholds, absent):
        key = workload.name, metric.name
        sides = [
            sides_of(record, workload_record, metric, parts.get(key), way)
            for record, workload_record, parts in ((was, other, old_parts), (now, workload, new_parts))
        ]
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            if name not in sides[0] or name not in sides[1]:
                lack = Lack.OLD if name not in sides[0] else Lack.NEW
                absent.append(Absent(lack, workload.name, metric.name, name))
                continue
            limit = thresholds.of(workload.name, metric.name, name, workload.margin)
            if limit is not None:
                figure = FigureRow(workload.name, metric.name, name)
                before, after = (
                    replace(side[name], spread=known.get(figure)) for side, known in zip(sides, spreads, strict=True)
                )
                drafts.append(
                    (_draft(name, workload, metric, limit, (before, after), way), _welch(before, after, metric))
                )
    if not drafts:
        others = ", ".join(missing.workload for missing in absent if missing.lack is Lack.REVISION)
        if others:
            raise NoAnswer(RefusalKind.COMPUTED_DIFFERENTLY, old.name, new.name, others)
        raise NoAnswer(RefusalKind.NOTHING_IN_COMMON, old.name, new.name)
    return Diff(way, old.name, new.name, now.baseline, _judged_all(drafts, seconds), differing(was, now), tuple(absent))


def diff_platforms(store: Store, first: str, second: str, thresholds: Thresholds) -> Diff:
    """Compare two platforms of one campaign, block by block. Raises `NoAnswer` for a missing platform."""
    record = store.record
    names = [platform.name for platform in record.platforms]
    for name in (first, second):
        if name not in names:
            raise NoAnswer(RefusalKind.NO_SUCH_PLATFORM, name, store.name, ", ".join(names))
    parts, seconds = metric_parts(store.samples()), workload_seconds(store.trials())
    way = Way.ABSOLUTE if record.design is Design.SEQUENTIAL else Way.PLATFORMS
    drafts: list[tuple[FigureChange, _Estimate | None]] = []
    absent: list[Absent] = []
    for workload, _, metric in _common(record, record, thresholds, absent):
        part = parts.get((workload.name, metric.name))
        limit = thresholds.of(workload.name, metric.name, second, workload.margin)
        if part is None or limit is None:
            continue
        grid = grid_of(record, workload, metric, part)
        if way is Way.ABSOLUTE:
            before, after = side_of(grid, first, way, record.baseline), side_of(grid, second, way, record.baseline)
            estimate = _welch(before, after, metric)
        else:
            before, after = (aligned(grid, name, record.baseline) for name in (first, second))
            estimate = _paired(after.logs - before.logs, metric.direction)
        if before.mean is None or after.mean is None:
            lack, name = (Lack.OLD, first) if before.mean is None else (Lack.NEW, second)
            absent.append(Absent(lack, workload.name, metric.name, name))
            continue
        drafts.append((_draft(second, workload, metric, limit, (before, after), way), estimate))
    if not drafts:
        raise NoAnswer(RefusalKind.NOTHING_IN_COMMON_OF_PLATFORMS, first, second)
    changes = _judged_all(drafts, seconds)
    return Diff(way, first, second, record.baseline, changes, platform_facts(record, first, second), tuple(absent))


def _common(
    was: CampaignRecord, now: CampaignRecord, thresholds: Thresholds, absent: list[Absent]
) -> Iterator[tuple[WorkloadRecord, WorkloadRecord, MetricRecord]]:
    """Yield the workloads and metrics that both sides share: headlines, CPU cost, and those that thresholds name."""
    before = {workload.name: workload for workload in was.workloads}
    absent += [Absent(Lack.NEW, name) for name in before if name not in {newer.name for newer in now.workloads}]
    for workload in now.workloads:
        other = before.get(workload.name)
        if other is None:
            absent.append(Absent(Lack.OLD, workload.name))
            continue
        if other.params != workload.params:
            absent.append(Absent(Lack.PARAMETERS, workload.name))
            continue
        if other.revision != workload.revision:
            absent.append(Absent(Lack.REVISION, workload.name))
            continue
        metrics = {metric.name: metric for metric in other.metrics}
        for number, metric in enumerate(workload.metrics):
            other_metric = metrics.get(metric.name)
            compared = number == 0 or metric.name == CPU_COST or thresholds.names(workload.name, metric.name)
            if (
                compared
                and other_metric is not None
                and (other_metric.unit, other_metric.direction) == (metric.unit, metric.direction)
            ):
                yield workload, other, metric


def _spreads(record: CampaignRecord, samples: pl.DataFrame) -> dict[FigureRow, Spread]:
    """Return the spread of each ratio of a campaign; empty for a design with other ratios than a diff's."""
    if record.design is not Design.BLOCKS:
        return {}
    return {figure: looks.typical.judged for figure, looks in campaign_looks(record, samples).items()}


def _draft(
    platform: str,
    workload: WorkloadRecord,
    metric: MetricRecord,
    threshold: float,
    sides: tuple[MetricSide, MetricSide],
    way: Way,
) -> FigureChange:
    n_old, n_new = (int((~np.isnan(side.logs)).sum()) for side in sides)
    logs = [float(np.nanmean(side.logs)) if count else None for side, count in zip(sides, (n_old, n_new), strict=True)]
    sign = 1 if metric.direction is Direction.LOWER else -1
    (old, new), times = (side.mean for side in sides), [None if log is None else math.exp(sign * log) for log in logs]
    if way is Way.ABSOLUTE:  # Included in the estimate of the change.
        old, new = (mean if log is None else math.exp(log) for mean, log in zip((old, new), logs, strict=True))
        times = [None, None]
    return FigureChange(
        platform,
        workload.name,
        metric.name,
        metric.unit,
        metric.direction,
        threshold,
        old,
        new,
        n_old,
        n_new,
        FigureOutcome.OPEN,
        old_times=times[0],
        new_times=times[1],
        gap=Gap.UNFIT if sides[0].unfit or sides[1].unfit else None,
    )


def _welch(before: MetricSide, after: MetricSide, metric: MetricRecord) -> _Estimate | None:
    """Return the difference of two means, with Welch's degrees of freedom from the spread of each."""
    if min(before.logs.size, after.logs.size) < MIN_BLOCKS:
        return None
    spreads = [_own(side) if side.spread is None else side.spread for side in (before, after)]
    squares = [spread.error**2 for spread in spreads]
    below = sum(square**2 / spread.df for square, spread in zip(squares, spreads, strict=True))
    df = sum(squares) ** 2 / below if below > 0 else float(before.logs.size + after.logs.size - 2)
    return _estimate(float(after.logs.mean() - before.logs.mean()), math.sqrt(sum(squares)), df, metric.direction)


def _own(side: MetricSide) -> Spread:
    return Spread(float(side.logs.std(ddof=1)) / math.sqrt(side.logs.size), side.logs.size - 1.0)


def _paired(differences: Floats, direction: Direction) -> _Estimate | None:
    logs = differences[~np.isnan(differences)]
    if logs.size < MIN_BLOCKS:
        return None
    return _estimate(
        float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(logs.size), float(logs.size - 1), direction
    )


def _estimate(point: float, error: float, df: float, direction: Direction) -> _Estimate:
    return _Estimate(point if direction is Direction.LOWER else -point, error, df)


def _judged_all(
    drafts: Sequence[tuple[FigureChange, _Estimate | None]], seconds: Mapping[str, float]
) -> tuple[FigureChange, ...]:
    """Return the changes with outcomes, the worst first.

    In a regression, the whole interval lies beyond the threshold, with ends that hold for all figures at once
    (Bonferroni). The outcome is fine if every figure shows it at the level by itself, which needs no correction (an
    intersection-union test: Berger, 1982).
    """
    usable = [at for at, (change, estimate) in enumerate(drafts) if _gap(change, estimate) is None]
    limits = {at: _log_limit(drafts[at][0]) for at in usable}
    estimates = {at: estimate for at in usable if (estimate := drafts[at][1]) is not None}
    raw = [estimates[at].p_beyond(limits[at]) for at in usable]
    adjusted = dict(zip(usable, holm(raw).tolist() if raw else [], strict=True))
    level = 1 - 2 * LEVEL / max(1, len(usable))
    changes = []
    for at, (change, estimate) in enumerate(drafts):
        if at not in estimates:
            changes.append(replace(change, gap=_gap(change, estimate)))
        else:
            changes.append(_judged(change, estimates[at], limits[at], adjusted[at], level, seconds))
    return worst_first(changes)


def worst_first(changes: Iterable[FigureChange]) -> tuple[FigureChange, ...]:
    """Sort regressions first, then open, then fine; the largest of each first."""
    order = [FigureOutcome.REGRESSION, FigureOutcome.OPEN, FigureOutcome.FINE]

    def rank(change: FigureChange) -> tuple[int, float]:
        return order.index(change.outcome), -(change.interval.point if change.interval else 0.0)

    return tuple(sorted(changes, key=rank))


def _gap(change: FigureChange, estimate: _Estimate | None) -> Gap | None:
    if change.gap is not None:
        return change.gap
    if estimate is None:
        return Gap.TOO_FEW_BLOCKS
    no_spread = not estimate.error > 1e-12 and min(change.n_old, change.n_new) < BLOCKS_WITHOUT_SPREAD
    return Gap.NO_SPREAD if no_spread else None


def _log_limit(change: FigureChange) -> float:
    """Return the threshold as a log of how many times worse."""
    lower = change.direction is Direction.LOWER
    return math.log1p(change.threshold) if lower else -math.log1p(-change.threshold)


def _judged(
    change: FigureChange, estimate: _Estimate, limit: float, p: float, level: float, seconds: Mapping[str, float]
) -> FigureChange:
    every, own = estimate.interval(level), estimate.interval(1 - 2 * LEVEL)
    question = Question(change.metric, Direction.LOWER, math.expm1(limit))  # Of how many times worse.
    intervals = LogIntervals(wide=every, narrow=own, sure=every)
    quantiles = float(special.stdtrit(estimate.df, [(1 + level) / 2, POWER]).sum())
    judged = replace(
        change,
        interval=_change(every, change.direction),
        at_most=_change(own, change.direction).high,
        detectable=_fraction(limit + quantiles * estimate.error, change.direction),
        p=p,
    )
    if side(question, intervals) is VerdictKind.SLOWER:
        return replace(judged, outcome=FigureOutcome.REGRESSION)
    if not_worse(question, intervals):
        return replace(judged, outcome=FigureOutcome.FINE)
    n_blocks = max(MIN_BLOCKS, min(change.n_old, change.n_new))
    goal = max(abs(limit - estimate.point), limit / 4)
    blocks = blocks_needed(max(half_width(estimate.error, estimate.df, level), goal), n_blocks, goal)
    block_s = seconds.get(change.workload)
    return replace(judged, blocks=blocks, seconds=None if block_s is None else blocks * block_s)


def _change(times_worse: Interval, direction: Direction) -> Interval:
    """Convert logs of how many times worse to overheads (fractions)."""
    return Interval(*(_fraction(log, direction) for log in (times_worse.point, times_worse.low, times_worse.high)))


def _fraction(times_worse: float, direction: Direction) -> float:
    return overhead_of(times_worse if direction is Direction.LOWER else -times_worse, direction)


def computed_differently(was: CampaignRecord, now: CampaignRecord) -> list[str]:
    """Return the workloads of both records that differ in their revision."""
    before = {workload.name: workload.revision for workload in was.workloads}
    return [newer.name for newer in now.workloads if before.get(newer.name, newer.revision) != newer.revision]


def same_work(was: WorkloadRecord, now: WorkloadRecord) -> bool:
    """Return True if the figures of two records of a workload mean the same: equal parameters and revision."""
    return (was.params, was.revision) == (now.params, now.revision)


def same_host(was: CampaignRecord, now: CampaignRecord) -> bool:
    """Return True if the machine looks the same. A record has no name of it."""
    facts = ("architecture", "virtualised")
    return all(_host(was, name) == _host(now, name) for name in facts) and all(
        _cpu(was, name) == _cpu(now, name) for name in ("model", "cores", "threads")
    )


def differing(was: CampaignRecord, now: CampaignRecord) -> tuple[Fact, ...]:
    """Return the facts that should be equal if a change is to be the platforms', and known changes of the platforms."""
    campaign_facts = (
        ("CPU", _cpu(was, "model"), _cpu(now, "model")),
        ("threads", _cpu(was, "threads"), _cpu(now, "threads")),
        ("virtualised", _host(was, "virtualised"), _host(now, "virtualised")),
        ("kernel", _host(was, "kernel"), _host(now, "kernel")),
        ("image", was.image.get("recipe_hash"), now.image.get("recipe_hash")),
        ("agent", was.agent_hash, now.agent_hash),
        ("tare", was.tare_version, now.tare_version),
        ("design", was.design, now.design),
        ("CPUs", was.resources.cpus, now.resources.cpus),
        ("memory", was.resources.memory_bytes, now.resources.memory_bytes),
    )
    versions = {platform.name: platform.version for platform in was.platforms}
    platforms = ((newer.name, versions[newer.name], newer.version) for newer in now.platforms if newer.name in versions)
    return tuple(Fact(name, *_texts(old, new)) for name, old, new in (*campaign_facts, *platforms) if old != new)


def platform_facts(record: CampaignRecord, first: str, second: str) -> tuple[Fact, ...]:
    """Return the known differences of two platforms of one campaign."""
    before, after = (record.fairness.get(name) for name in (first, second))
    if not isinstance(before, dict) or not isinstance(after, dict):
        return ()
    names = dict.fromkeys([*before, *after])
    return tuple(
        Fact(str(name), *_texts(before.get(name), after.get(name)))
        for name in names
        if before.get(name) != after.get(name)
    )


def _host(record: CampaignRecord, name: str) -> Any:
    return record.host.get(name)


def _cpu(record: CampaignRecord, name: str) -> Any:
    cpu = record.host.get("cpu")
    return cpu.get(name) if isinstance(cpu, dict) else None


def _texts(old: Any, new: Any) -> tuple[str, str]:
    """Both sides of a fact; of one with parts, the parts that differ."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return _text(old), _text(new)
    parts = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    before, after = (", ".join(f"{name}={_text(side.get(name))}" for name in parts) for side in (old, new))
    return before, after


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={_text(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "unknown" if value is None else str(value)
