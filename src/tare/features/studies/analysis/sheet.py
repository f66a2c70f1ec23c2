"""A campaign in the figures by which the studies sum up: points by a profile, per cent of bare metal, scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analysis.grids import grid_of, metric_parts
from tare.analysis.refusals import NoAnswer
from tare.estimates.grid import Grid
from tare.features.studies.analysis.profile import EvaluationProfile, Feature, ScoreSheet, evaluate
from tare.features.studies.analysis.scores import (
    PercentOfBaseline,
    percent_of_baseline,
    row_scores,
    standardised,
    trial_count_overhead,
)
from tare.model import Direction, Mode, Status
from tare.store import CampaignRecord

Floats = NDArray[np.float64]
_DAY_S = 86_400
#: The ends of a figure without an interval, as shares of it.
_ANYTHING = (1e-9, 1e9)
#: A figure's workloads with their means.
_Levels = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class TrialCount:
    """The trials of a platform that fit into 24 hours, with their overhead against the baseline in per cent."""

    trials: int
    overhead_percent: float


@dataclass(frozen=True, slots=True)
class Sheet:
    """The studies' summary figures for one campaign."""

    points: list[ScoreSheet]
    percents: dict[str, dict[str, PercentOfBaseline]]  # by workload's headline, then platform
    standardised: dict[str, dict[str, float]]  # the same
    rows: dict[str, float]  # mean of a platform's standardised scores; those with a figure everywhere
    trial_counts: dict[str, dict[str, TrialCount]]  # by workload, then platform


#: By workload, metric and platform: the ends of a figure's interval, as shares of the figure.
Doubt = Mapping[tuple[str, str, str], tuple[float, float]]


def score(
    record: CampaignRecord,
    samples: pl.DataFrame,
    trials: pl.DataFrame,
    profile: EvaluationProfile,
    doubt: Doubt | None = None,
) -> Sheet:
    """Score a campaign. A platform without a positive figure has no score, and no substitute.

    ``samples`` and ``trials``: of `tare.store.Store`. ``doubt``: by which points have a range; a figure without an
    entry may be anything.
    """
    parts = metric_parts(samples)
    values = {
        (workload.name, metric.name): _by_platform(grid_of(record, workload, metric, part))
        for workload in record.workloads
        for metric in workload.metrics
        if (part := parts.get((workload.name, metric.name))) is not None
    }
    percents: dict[str, dict[str, PercentOfBaseline]] = {}
    standards: dict[str, dict[str, float]] = {}
    for workload in record.workloads:
        metric = workload.metrics[0]
        by_platform = values.get((workload.name, metric.name), {})
        base = by_platform.get(record.baseline)
        if base is None:
            continue
        percents[workload.name] = {
            name: percent_of_baseline(platform_values, base) for name, platform_values in by_platform.items()
        }
        shares = standardised([platform_values.mean() for platform_values in by_platform.values()], metric.direction)
        standards[workload.name] = dict(zip(by_platform, map(float, shares), strict=True))
    counts = trial_counts(record, trials)
    return Sheet(_points(record, values, profile, doubt), percents, standards, _rows(record, standards), counts)


def trial_counts(record: CampaignRecord, trials: pl.DataFrame) -> dict[str, dict[str, TrialCount]]:
    """Trials that fit into 24 hours, by the mean time that one took, with what it took to prepare it (Li 2017, 3.3.4).

    Of workloads whose trials come one after the other; slices of all platforms take turns of one length.
    """
    ok = trials.filter((pl.col("status") == Status.OK.value) & (pl.col("turn_s") > 0))
    means = ok.group_by("workload", "platform").agg(pl.col("turn_s").mean())
    fitting = {(str(workload), str(platform)): int(_DAY_S / s) for workload, platform, s in means.iter_rows()}
    counted: dict[str, dict[str, TrialCount]] = {}
    for workload in record.workloads:
        base = fitting.get((workload.name, record.baseline), 0)
        if workload.mode is not Mode.RUN or not base:
            continue
        counted[workload.name] = {
            platform.name: TrialCount(count, 100 * trial_count_overhead(count, base))
            for platform in record.platforms
            if (count := fitting.get((workload.name, platform.name))) is not None
        }
    return counted


def _by_platform(grid: Grid) -> dict[str, Floats]:
    """Block values of each platform, the baseline's arms together; platforms with none or unfit samples lack."""
    by_platform = {}
    for name in dict.fromkeys(arm.platform for arm in grid.arms):
        arms = grid.of_platform(name)
        platform_values = np.concatenate([grid.block_values(arm) for arm in arms])
        if platform_values.size and not grid.unfit[arms].any():
            by_platform[name] = platform_values
    return by_platform


def _points(
    record: CampaignRecord,
    values: Mapping[tuple[str, str], Mapping[str, Floats]],
    profile: EvaluationProfile,
    doubt: Doubt | None,
) -> list[ScoreSheet]:
    ends: dict[str, dict[str, tuple[float, float]]] = {platform.name: {} for platform in record.platforms}
    figures: dict[str, dict[str, float]] = {platform.name: {} for platform in record.platforms}
    for feature in profile.feature:
        by_platform = _figures(record, values, feature)
        # Without the baseline's figure there is nothing to compare with, unless the profile brings its own.
        if feature.reference is not None or record.baseline in by_platform:
            for name, levels in by_platform.items():
                figures[name][feature.name] = float(np.mean([mean for _, mean in levels]))
                ends[name][feature.name] = _ends(levels, feature.metric, name, doubt or {})
    return evaluate(profile, figures, record.baseline, None if doubt is None else ends)


def _ends(levels: _Levels, metric: str, platform: str, doubt: Doubt) -> tuple[float, float]:
    """The ends of a feature's figure: all of its levels at their lower ends, and all at their higher ones."""
    shares = [doubt.get((workload, metric, platform), _ANYTHING) for workload, _ in levels]
    lows, highs = zip(
        *((mean * low, mean * high) for (_, mean), (low, high) in zip(levels, shares, strict=True)), strict=True
    )
    return float(np.mean(lows)), float(np.mean(highs))


def _figures(
    record: CampaignRecord, values: Mapping[tuple[str, str], Mapping[str, Floats]], feature: Feature
) -> dict[str, _Levels]:
    """A feature's means of each platform: of a curve those of its levels, of platforms that have all of them."""
    for name in feature.workloads:
        of_curve = [workload.name for workload in record.workloads if workload.level and workload.level.curve == name]
        levels = {workload: values.get((workload, feature.metric), {}) for workload in of_curve or [name]}
        measured = {workload: by_platform for workload, by_platform in levels.items() if by_platform}
        if measured:
            whole = set.intersection(*(set(by_platform) for by_platform in measured.values()))
            return {
                platform: [(workload, float(of[platform].mean())) for workload, of in measured.items()]
                for platform in next(iter(measured.values()))
                if platform in whole
            }
    return {}


def _rows(record: CampaignRecord, standards: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    whole = [platform.name for platform in record.platforms if all(platform.name in row for row in standards.values())]
    if not whole or not standards:
        return {}
    try:
        table = [[standards[workload][name] for workload in standards] for name in whole]
        return dict(zip(whole, map(float, row_scores(table, [Direction.HIGHER] * len(standards))), strict=True))
    except NoAnswer:
        return {}
