"""A figure over many campaigns of one host: where it changed, by how much, and what else changed there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tare import lazily
from tare.analysis.comparisons.sides import Way
from tare.analysis.comparisons.summaries import LeftOutCampaign, Summary, Why, wanted
from tare.analysis.comparisons.thresholds import Thresholds
from tare.analysis.quality.change_points import MAX_VALUES, MIN_STRETCH, change_points
from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.estimates.intervals import POWER, Floats
from tare.estimates.looks import Look
from tare.estimates.overhead import overhead_of
from tare.features.diff.analysis import LEVEL, Fact, FigureOutcome, differing, overall, same_host, same_work
from tare.model import Design, Direction
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")

#: Minimum number of campaigns for a change to be seen.
MIN_CAMPAIGNS = 2 * MIN_STRETCH


#: Factor by which a step must be larger than a step whose place is known.
_EVERYWHERE = 1.4


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A campaign of the history, with what differs from the one before it."""

    name: str
    created: float  # UNIX seconds
    tare_version: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """A figure in a campaign: ``campaign`` is the index of its entry."""

    campaign: int
    value: float  # the overhead as a fraction, or the mean in the unit where figures themselves are compared
    mean: float  # in the unit
    n_blocks: int


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A change; ``campaign``: the first after it. ``change`` is a fraction, positive is worse."""

    campaign: int
    p: float
    before: float  # median of the values of the stretch before, as `Point.value`
    after: float
    change: float  # of the medians
    low: float  # of the means, each end at 95 % for all series at once
    high: float
    facts: tuple[Fact, ...]  # what differs between the last campaign before and the first after it


@dataclass(frozen=True, slots=True)
class Series:
    """A figure over the campaigns.

    ``lacking``: so many campaigns more, and a change could be seen; ``detectable``: the step for the worse, a fraction,
    that nine of ten such histories show in their last campaigns.
    """

    platform: str
    workload: str
    metric: str
    unit: str
    direction: Direction
    threshold: float
    points: tuple[HistoryPoint, ...]
    steps: tuple[HistoryStep, ...]
    outcome: FigureOutcome
    lacking: int = 0
    detectable: float | None = None


@dataclass(frozen=True, slots=True)
class History:
    """All series, the worst first; ``alpha``: what chance of a false change each was given."""

    way: Way
    baseline: str
    entries: tuple[HistoryEntry, ...]
    series: tuple[Series, ...]
    left_out: tuple[LeftOutCampaign, ...]
    alpha: float

    @property
    def outcome(self) -> FigureOutcome:
        """The outcome of all series together, by `overall`."""
        return overall(series.outcome for series in self.series)


@dataclass(slots=True)
class _Growing:
    """A series while campaigns are read; ``logs``: the mean log of each campaign, worse is positive."""

    metric: MetricRecord
    threshold: float
    points: list[HistoryPoint] = field(default_factory=list)
    logs: list[float] = field(default_factory=list)


def history(
    summaries: Sequence[Summary],
    thresholds: Thresholds,
    *,
    absolute: bool = False,
    unread: Sequence[LeftOutCampaign] = (),
) -> History:
    """The series over these campaigns, in order of time; of the newest one's host, baseline and parameters.

    A series changes where e-divisive splits it (`change_points`), with `LEVEL` shared among all series that are long
    enough (Bonferroni). It regressed where its last change is for the worse by more than the threshold, with an
    interval that excludes zero. It did not where a step of the threshold would have been seen. Raises `NoAnswer` where
    there is no campaign.
    """
    if not summaries:
        raise NoAnswer(RefusalKind.NO_CAMPAIGN)
    once, left_out = _once(summaries)
    ordered = sorted(once, key=lambda summary: summary.record.created)[-MAX_VALUES:]
    newest = ordered[-1].record
    left_out = [*unread, *left_out]
    kept: list[Summary] = []
    for summary in ordered:
        why = _why_not(summary.record, newest, absolute=absolute)
        if why is None:
            kept.append(summary)
        else:
            left_out.append(LeftOutCampaign(summary.name, why))
    before = [None, *(summary.record for summary in kept)]
    entries = tuple(
        HistoryEntry(
            summary.name,
            summary.record.created,
            summary.record.tare_version,
            () if last is None else differing(last, summary.record),
        )
        for last, summary in zip(before, kept, strict=False)
    )
    left_out += _other_work(kept, newest)
    growing = _grown(kept, newest, thresholds, absolute=absolute)
    tested = sum(len(series.points) >= MIN_CAMPAIGNS for series in growing.values())
    alpha = LEVEL / max(1, tested)
    series = [
        _series(names, grown, [summary.record for summary in kept], alpha, absolute=absolute)
        for names, grown in growing.items()
    ]
    order = [FigureOutcome.REGRESSION, FigureOutcome.OPEN, FigureOutcome.FINE]
    series.sort(key=lambda figure: (order.index(figure.outcome), -(figure.steps[-1].change if figure.steps else 0.0)))
    way = Way.ABSOLUTE if absolute else Way.RELATIVE
    return History(way, newest.baseline, entries, tuple(series), tuple(left_out), alpha)


def _once(summaries: Sequence[Summary]) -> tuple[list[Summary], list[LeftOutCampaign]]:
    """Each campaign once, by its id: of several files of one the one with most blocks, and the others left out."""
    by_id: dict[str, list[Summary]] = {}
    for summary in summaries:
        by_id.setdefault(summary.record.id, []).append(summary)
    kept, left_out = [], []
    for copies in by_id.values():
        most = max(copies, key=lambda summary: sum(side.logs.size for side in summary.sides.values()))
        kept.append(most)
        left_out += [LeftOutCampaign(copy.name, Why.SAME_CAMPAIGN, most.name) for copy in copies if copy is not most]
    return kept, left_out


def _why_not(record: CampaignRecord, newest: CampaignRecord, *, absolute: bool) -> Why | None:
    if not same_host(record, newest):
        return Why.HOST
    if not absolute and record.design is Design.SEQUENTIAL:
        return Why.SEQUENTIAL
    if not absolute and record.baseline != newest.baseline:
        return Why.BASELINE
    return None


def _other_work(kept: Sequence[Summary], newest: CampaignRecord) -> Iterator[LeftOutCampaign]:
    """The campaigns that ran workloads of the newest one's names otherwise."""
    now = {workload.name: workload for workload in newest.workloads}
    for summary in kept:
        others = [
            workload.name
            for workload in summary.record.workloads
            if workload.name in now and not same_work(workload, now[workload.name])
        ]
        if others:
            yield LeftOutCampaign(summary.name, Why.WORK, ", ".join(others))


def _grown(
    kept: Sequence[Summary], newest: CampaignRecord, thresholds: Thresholds, *, absolute: bool
) -> dict[tuple[str, str, str], _Growing]:
    """By platform, workload and metric of the newest campaign; others' figures where they are of the same work."""
    metrics_by_name = {
        (workload.name, metric.name): (workload, metric) for workload, metric in wanted(newest, thresholds)
    }
    grown: dict[tuple[str, str, str], _Growing] = {}
    for place, campaign in enumerate(kept):
        workloads = {workload.name: workload for workload in campaign.record.workloads}
        for names, side in campaign.sides.items():
            platform, workload_name, metric_name = names
            if (workload_name, metric_name) not in metrics_by_name or side.mean is None:
                continue
            workload, metric = metrics_by_name[workload_name, metric_name]
            if not (same_work(theirs := workloads[workload_name], workload) and _same_metric(theirs, metric)):
                continue
            limit = thresholds.of(workload_name, metric_name, platform, workload.margin)
            if limit is None:
                continue
            log = float(side.logs.mean())
            value = side.mean if absolute else overhead_of(log, metric.direction)
            series = grown.setdefault(names, _Growing(metric, limit))
            series.points.append(HistoryPoint(place, value, side.mean, side.logs.size))
            series.logs.append(log if metric.direction is Direction.LOWER else -log)
    return grown


def _same_metric(theirs: WorkloadRecord, metric: MetricRecord) -> bool:
    their_metric = {candidate.name: candidate for candidate in theirs.metrics}.get(metric.name)
    return their_metric is not None and (their_metric.unit, their_metric.direction) == (metric.unit, metric.direction)


def _series(
    names: tuple[str, str, str], growing: _Growing, records: Sequence[CampaignRecord], alpha: float, *, absolute: bool
) -> Series:
    common = (*names, growing.metric.unit, growing.metric.direction, growing.threshold, tuple(growing.points))
    if len(growing.points) < MIN_CAMPAIGNS:
        return Series(*common, (), FigureOutcome.OPEN, MIN_CAMPAIGNS - len(growing.points))
    # Enough that the least p is half of the required level.
    permutations = math.ceil(2 / alpha)
    logs = np.array(growing.logs)
    changes = change_points(growing.logs, alpha=alpha, permutations=permutations)
    edges = [0, *(point.at for point in changes), logs.size]
    stretches = [logs[start:end] for start, end in itertools.pairwise(edges)]
    steps = []
    for point, (was, now) in zip(changes, itertools.pairwise(stretches), strict=True):
        last, first = growing.points[point.at - 1].campaign, growing.points[point.at].campaign
        before, after = (_value(growing, median, absolute=absolute) for median in (point.before, point.after))
        change = _fraction(point.after - point.before, growing.metric.direction)
        interval = Look.side_by_side(now, was).interval(1 - 2 * alpha)
        low, high = (_fraction(end, growing.metric.direction) for end in (interval.low, interval.high))
        facts = differing(records[last], records[first])
        steps.append(HistoryStep(first, point.p, before, after, change, low, high, facts))
    sees = _fraction(_smallest_step(stretches, alpha), growing.metric.direction)
    if steps and steps[-1].change > growing.threshold and steps[-1].low > 0:
        return Series(*common, tuple(steps), FigureOutcome.REGRESSION, detectable=sees)
    return Series(
        *common, tuple(steps), FigureOutcome.FINE if sees <= growing.threshold else FigureOutcome.OPEN, detectable=sees
    )


def _smallest_step(stretches: Sequence[Floats], alpha: float) -> float:
    """The step in the last `MIN_STRETCH` campaigns, a log, that nine of ten histories with such noise show.

    ``1.4 (t(1 - alpha / 2) + t(0.90)) s sqrt(1 / n1 + 1 / n2)``, with s the scatter around the means of stretches: what
    Student's test would take, times what e-divisive takes more, as it looks everywhere (simulated: 9 of 10 are found).
    """
    count = sum(stretch.size for stretch in stretches)
    df = max(1, count - len(stretches))
    scatter = math.sqrt(sum(float(((stretch - stretch.mean()) ** 2).sum()) for stretch in stretches) / df)
    quantiles = float(special.stdtrit(df, [1 - alpha / 2, POWER]).sum())
    return _EVERYWHERE * quantiles * scatter * math.sqrt(1 / MIN_STRETCH + 1 / max(1, count - MIN_STRETCH))


def _value(growing: _Growing, log: float, *, absolute: bool) -> float:
    """A median of logs, worse is positive, as `Point.value`."""
    log = log if growing.metric.direction is Direction.LOWER else -log
    return float(np.exp(log)) if absolute else overhead_of(log, growing.metric.direction)


def _fraction(log: float, direction: Direction) -> float:
    """A change of so many logs for the worse as `tare diff` gives it."""
    return overhead_of(log if direction is Direction.LOWER else -log, direction)
