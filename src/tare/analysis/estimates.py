"""Results of a campaign under way, for the terminal: headlines with their verdicts, by the report's rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tare.analysis.counts import CountsByArm, count_trials, trials_of
from tare.analysis.evidence import Evidence, paired
from tare.analysis.results import Counts, Description, MetricResult, NoiseFloor, PlatformResult
from tare.analysis.rule import SURE_LIVE, WIDE, noise_floor, settle
from tare.analysis.trust.fairness import refusals
from tare.analysis.verdicts import Kind, Question, Reason, Verdict
from tare.estimates.contrasts import Contrast
from tare.estimates.looks import Looks
from tare.estimates.moderated import Figure, moderated_looks
from tare.estimates.overhead import overhead, ratio
from tare.estimates.running import BlockFigures, RunningEstimates
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of a campaign so far."""

    record: CampaignRecord
    counts: CountsByArm
    contrasts: Mapping[Figure, Contrast]
    looks: Mapping[Figure, Looks]
    sure: float


def headlines(
    record: CampaignRecord, estimates: RunningEstimates, trials: pl.DataFrame, sure: float = SURE_LIVE
) -> list[MetricResult]:
    """Each workload's first metric. ``trials``: as of `tare.store.Store.trials`, to count how they ended.

    ``sure``: the level against false alarms; as these verdicts are looked at after every block, it is higher than the
    report's.
    """
    unlike = refusals(record)
    contrasts = {figure: found for figure, found in estimates.contrasts().items() if figure.platform not in unlike}
    looks = moderated_looks(contrasts, frozenset(contrasts))
    seen = _Seen(record, count_trials(trials), contrasts, looks, sure)
    figures = estimates.figures()
    return [
        _result(seen, workload, workload.metrics[0], figures[workload.name, workload.metrics[0].name])
        for workload in record.workloads
    ]


def _result(seen: _Seen, workload: WorkloadRecord, metric: MetricRecord, figures: BlockFigures) -> MetricResult:
    record = seen.record
    arms = record.all_arms()
    question = Question(metric.name, metric.direction, workload.margin)
    twin = _evidence(seen, Figure(workload.name, metric.name, None))
    floor = NoiseFloor(noise_floor(question, twin), 0 if twin is None else twin.n_blocks)
    platforms = []
    for name in dict.fromkeys(arm.platform for arm in arms):
        at = [index for index, arm in enumerate(arms) if arm.platform == name]
        described = Description.of(np.array([value for index in at for value in figures.values.get(index, ())]))
        counts = seen.counts.get((workload.name, name), Counts())
        empty = PlatformResult(name, described.n, 0, counts, described)
        if name == record.baseline:
            platforms.append(replace(empty, verdict=Verdict(Kind.BASELINE, Reason.BASELINE)))
        else:
            platforms.append(_platform(seen, empty, workload.name, question, twin))
    return MetricResult(
        workload.name, metric.name, metric.unit, metric.direction, workload.margin, floor, tuple(platforms)
    )


def _platform(
    seen: _Seen, empty: PlatformResult, workload: str, question: Question, twin: Evidence | None
) -> PlatformResult:
    evidence = _evidence(seen, Figure(workload, question.metric, empty.platform))
    if evidence is None or not empty.described.n:
        return replace(empty, n_blocks=0)
    verdict = settle(question, evidence, twin, sure=seen.sure)
    if evidence.looks is None:
        return replace(empty, n_blocks=evidence.n_blocks, verdict=verdict)
    typical = evidence.looks.typical.interval(WIDE)
    return replace(
        empty,
        n_blocks=evidence.n_blocks,
        ratio=ratio(typical),
        overhead=overhead(typical, question.direction),
        looks=evidence.looks,
        verdict=verdict,
    )


def _evidence(seen: _Seen, figure: Figure) -> Evidence | None:
    contrast = seen.contrasts.get(figure)
    if contrast is None:
        return None
    workload, platform = figure.workload, figure.platform
    if platform is None:
        return paired(contrast, seen.looks.get(figure))
    own, base = (seen.counts.get((workload, name), Counts()) for name in (platform, seen.record.baseline))
    return paired(contrast, seen.looks.get(figure), trials_of(own, base))
