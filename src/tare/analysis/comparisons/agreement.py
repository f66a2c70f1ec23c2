"""Agreement of counted instructions with measured CPU cost in ranking platforms, and the exceptions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analysis.comparisons.sides import Way, sides_of
from tare.analysis.grids import metric_parts
from tare.analysis.instructions import UNIT, figures
from tare.footprint_model import Footprint
from tare.model import CPU_COST
from tare.store import Store

#: With fewer platforms, a rank says nothing.
MIN_PLATFORMS = 3
#: An outlier's instructions per nanosecond differ from the usual rate of its workload by at least this factor.
FAR = 1.5

Costs = Mapping[tuple[str, str], float]  # CPU nanoseconds of a unit by platform and workload.


@dataclass(frozen=True, slots=True)
class AgreementPoint:
    """A unit of a workload's work on a platform, counted and measured."""

    platform: str
    workload: str
    instructions: float
    ns: float

    @property
    def rate(self) -> float:
        """Counted instructions per measured nanosecond."""
        return self.instructions / self.ns


@dataclass(frozen=True, slots=True)
class Agreement:
    """Rank correlations (Spearman's) by workload and over all points, and points far from the usual rate."""

    points: tuple[AgreementPoint, ...]
    ranks: Mapping[str, float | None]  # None: all are equal in one of the two.
    together: float | None
    outliers: tuple[AgreementPoint, ...]  # The farthest first.
    usual: Mapping[str, float]  # Median rate by workload.


def costs(store: Store) -> dict[tuple[str, str], float]:
    """Return the mean measured CPU cost over blocks, for each platform and workload with a CPU cost."""
    parts = metric_parts(store.samples())
    mean_costs = {}
    for workload in store.record.workloads:
        for metric in workload.metrics:
            if metric.name == CPU_COST:
                part = parts.get((workload.name, metric.name))
                for platform, side in sides_of(store.record, workload, metric, part, Way.ABSOLUTE).items():
                    if side.mean is not None and side.mean > 0:
                        mean_costs[platform, workload.name] = side.mean
    return mean_costs


def agreement(footprints: Sequence[Footprint], measured: Costs) -> Agreement | None:
    """Return the agreement of counted instructions and measured times over all platforms and workloads.

    Workloads with both on fewer platforms than `MIN_PLATFORMS` are left out. None if no workload remains.
    """
    counted = {
        (platform, workload): amount.median
        for (platform, workload, figure), amount in figures(footprints).items()
        if figure == UNIT
    }
    points = [AgreementPoint(*key, counted[key], measured[key]) for key in counted if key in measured]
    by_workload: dict[str, list[AgreementPoint]] = {}
    for point in points:
        by_workload.setdefault(point.workload, []).append(point)
    kept = {workload: its_points for workload, its_points in by_workload.items() if len(its_points) >= MIN_PLATFORMS}
    if not kept:
        return None
    every = [point for its_points in kept.values() for point in its_points]
    usual = {workload: statistics.median(point.rate for point in its_points) for workload, its_points in kept.items()}

    def distance(point: AgreementPoint) -> float:
        return max(point.rate / usual[point.workload], usual[point.workload] / point.rate)

    outliers = sorted((point for point in every if distance(point) > FAR), key=distance, reverse=True)
    ranks = {workload: _correlation(its_points) for workload, its_points in kept.items()}
    return Agreement(tuple(every), ranks, _correlation(every), tuple(outliers), usual)


def _correlation(points: Iterable[AgreementPoint]) -> float | None:
    measured = list(points)
    ranks = [_ranks([point.instructions for point in measured]), _ranks([point.ns for point in measured])]
    if any(np.ptp(ranking) == 0 for ranking in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    return np.array(pl.Series(values).rank(), dtype=np.float64)
