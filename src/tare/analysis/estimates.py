"""Results of a campaign under way, for the terminal: headlines with their verdicts, from one figure a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from tare.analysis.counts import count_trials, trials_of
from tare.analysis.hidden import Hidden, hidden
from tare.analysis.results import Counts, Description, MetricResult, NoiseFloor, PlatformResult
from tare.analysis.verdicts import (
    Closed,
    Kind,
    LogIntervals,
    Question,
    Reason,
    Verdict,
    aa_gate,
    judge,
    too_few,
    within_noise,
)
from tare.estimates.intervals import MIN_BLOCKS, t_interval
from tare.estimates.overhead import overhead, ratio
from tare.estimates.running import BlockFigures, RunningEstimates
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord


def headlines(record: CampaignRecord, estimates: RunningEstimates, trials: pl.DataFrame) -> list[MetricResult]:
    """Each workload's first metric. ``trials``: as of `tare.store.Store.trials`, to count how they ended."""
    counts, figures = count_trials(trials), estimates.figures()
    return [
        _result(record, workload, workload.metrics[0], figures[workload.name, workload.metrics[0].name], counts)
        for workload in record.workloads
    ]


def _result(
    record: CampaignRecord,
    workload: WorkloadRecord,
    metric: MetricRecord,
    figures: BlockFigures,
    counts: Mapping[tuple[str, str], Counts],
) -> MetricResult:
    arms = record.all_arms()
    question = Question(metric.name, metric.direction, workload.margin)
    unsure = figures.unfit & {at for at, arm in enumerate(arms) if arm.platform == record.baseline}
    twin = None if unsure else _intervals(figures.twin)
    floor = NoiseFloor(None if twin is None else overhead(twin.wide, metric.direction), len(figures.twin))
    closed = aa_gate(question, twin)
    platforms = []
    for name in dict.fromkeys(arm.platform for arm in arms):
        at = [index for index, arm in enumerate(arms) if arm.platform == name]
        values = np.array([value for index in at for value in figures.values.get(index, ())])
        count = counts.get((workload.name, name), Counts())
        if name == record.baseline:
            verdict = Verdict(Kind.BASELINE, Reason.BASELINE)
            platforms.append(PlatformResult(name, values.size, 0, count, Description.of(values), verdict=verdict))
        else:
            looks = figures.logs.get(at[0], []), figures.totals.get(at[0], [])
            trials = trials_of(count, counts.get((workload.name, record.baseline), Counts()))
            unseen = hidden(figures.draws.get(at[0], 0), len(looks[0]), trials)
            platforms.append(_platform(name, question, looks, unseen, Description.of(values), count, floor, closed))
    return MetricResult(
        workload.name, metric.name, metric.unit, metric.direction, workload.margin, floor, tuple(platforms)
    )


def _platform(
    name: str,
    question: Question,
    looks: tuple[list[float], list[float]],
    unseen: Hidden,
    described: Description,
    counts: Counts,
    floor: NoiseFloor,
    closed: Closed | None,
) -> PlatformResult:
    logs, totals = looks
    typical = _intervals(logs)
    empty = PlatformResult(name, len(logs), 0, counts, described)
    if typical is None:
        return replace(empty, verdict=too_few(len(logs), None)) if described.n else empty
    verdict = judge(question, typical, _intervals(totals), unseen)
    if closed is not None:
        verdict = closed.verdict(verdict.basis)
    else:
        verdict = within_noise(verdict, question.margin, floor.interval)
    over = overhead(typical.wide, question.direction)
    return replace(empty, ratio=ratio(typical.wide), overhead=over, verdict=verdict)


def _intervals(logs: list[float]) -> LogIntervals | None:
    if len(logs) < MIN_BLOCKS:
        return None
    return LogIntervals(*(t_interval(np.array(logs), level) for level in (0.95, 0.90, 0.99)))
