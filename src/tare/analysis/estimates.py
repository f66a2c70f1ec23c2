"""Results of a running campaign for the terminal: headlines with their verdicts, by the report's rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tare.analysis.amounts import scale
from tare.analysis.counts import CountsByArm, count_trials, trials_of
from tare.analysis.effects import effect
from tare.analysis.evidence import Evidence, paired
from tare.analysis.quality.fairness import refusals
from tare.analysis.results import Description, MetricResult, NoiseFloor, PlatformResult, TrialCounts
from tare.analysis.rule import SURE_LIVE, WIDE, noise_floor, settle
from tare.analysis.verdicts import Question, Reason, Verdict, VerdictKind
from tare.estimates.contrasts import Contrast
from tare.estimates.looks import Looks
from tare.estimates.moderated import FigureRow, moderated_looks
from tare.estimates.overhead import overhead, ratio
from tare.estimates.running import BlockFigures, RunningEstimates
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord


@dataclass(frozen=True, slots=True)
class _Seen:
    """Data of a campaign so far."""

    record: CampaignRecord
    counts: CountsByArm
    contrasts: Mapping[FigureRow, Contrast]
    looks: Mapping[FigureRow, Looks]
    sure: float


def headlines(
    record: CampaignRecord, estimates: RunningEstimates, trials: pl.DataFrame, sure: float = SURE_LIVE
) -> list[MetricResult]:
    """Return the result of each workload's first metric. ``trials``: `tare.store.Store.trials`, to count failures.

    ``sure``: the level against false alarms. It is higher than the report's, because these verdicts are looked at after
    every block.
    """
    unlike = refusals(record)
    contrasts = {
        figure: of_figure for figure, of_figure in estimates.contrasts().items() if figure.platform not in unlike
    }
    looks = moderated_looks(contrasts, frozenset(contrasts))
    seen = _Seen(record, count_trials(trials), contrasts, looks, sure)
    figures = estimates.figures()
    return [
        _result(seen, workload, workload.metrics[0], figures[workload.name, workload.metrics[0].name])
        for workload in record.workloads
    ]


def _result(seen: _Seen, workload: WorkloadRecord, metric: MetricRecord, figures: BlockFigures) -> MetricResult:
    record = seen.record
    question = Question(metric.name, metric.direction, workload.margin)
    twin = _evidence(seen, FigureRow(workload.name, metric.name, None))
    floor = NoiseFloor(noise_floor(question, twin), 0 if twin is None else twin.n_blocks)
    amounts = scale(metric.unit, workload.family, workload.work_unit)
    empty = {name: _empty(seen, workload, figures, name) for name in _names(record)}
    baseline = empty[record.baseline].described.mean
    platforms = [replace(empty.pop(record.baseline), verdict=Verdict(VerdictKind.BASELINE, Reason.BASELINE))]
    for name, platform in empty.items():
        evidence = _evidence(seen, FigureRow(workload.name, metric.name, name))
        if evidence is None or not platform.described.n:
            platforms.append(replace(platform, n_blocks=0))
            continue
        verdict = settle(question, evidence, twin, sure=seen.sure)
        shown = effect(question, evidence, verdict, baseline, amounts)
        platforms.append(_platform(replace(platform, verdict=verdict, effect=shown), question, evidence))
    return MetricResult(
        workload.name, metric.name, metric.unit, metric.direction, workload.margin, floor, tuple(platforms)
    )


def _names(record: CampaignRecord) -> list[str]:
    """Return the names of the platforms, the baseline first."""
    names = dict.fromkeys(arm.platform for arm in record.all_arms())
    return [record.baseline, *(name for name in names if name != record.baseline)]


def _empty(seen: _Seen, workload: WorkloadRecord, figures: BlockFigures, name: str) -> PlatformResult:
    """Return a platform's blocks and trial counts, without a comparison with the baseline."""
    arms = seen.record.all_arms()
    at = [index for index, arm in enumerate(arms) if arm.platform == name]
    described = Description.of(np.array([value for index in at for value in figures.values.get(index, ())]))
    return PlatformResult(name, described.n, 0, seen.counts.get((workload.name, name), TrialCounts()), described)


def _platform(platform: PlatformResult, question: Question, evidence: Evidence) -> PlatformResult:
    platform = replace(
        platform, n_blocks=evidence.n_blocks, amount=None if platform.effect is None else platform.effect.amount
    )
    if evidence.looks is None:
        return platform
    typical = evidence.looks.typical.interval(WIDE)
    return replace(platform, ratio=ratio(typical), overhead=overhead(typical, question.direction), looks=evidence.looks)


def _evidence(seen: _Seen, figure: FigureRow) -> Evidence | None:
    contrast = seen.contrasts.get(figure)
    if contrast is None:
        return None
    workload, platform = figure.workload, figure.platform
    if platform is None:
        return paired(contrast, seen.looks.get(figure))
    own, base = (seen.counts.get((workload, name), TrialCounts()) for name in (platform, seen.record.baseline))
    return paired(contrast, seen.looks.get(figure), trials_of(own, base))
