"""Curves: a platform's figures under increasing load, from the trials of a curve's levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tare.estimates import knees
from tare.estimates.intervals import MIN_BLOCKS, Floats, Interval, t_interval
from tare.store import CampaignRecord, LevelRecord, WorkloadRecord


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure read off a curve; ``point`` is None if there is none, ``interval`` (95 %) below three blocks."""

    point: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A level of a platform's curve, means over its blocks."""

    load: float
    n_blocks: int
    rate: float | None
    band: Interval | None  # 95 %, of the rate; None below two blocks.
    latency: float | None


@dataclass(frozen=True, slots=True)
class PlatformCurve:
    """One platform's figures over a rising load, and the figures read off them.

    A baseline's figure of a block is the mean of its arms'.
    """

    platform: str
    points: tuple[CurvePoint, ...]
    knee: Estimate  # In the unit of the load.
    saturation: Estimate  # In the unit of the load.
    best: Estimate  # The best rate with a latency below the limit.


@dataclass(frozen=True, slots=True)
class Curve:
    """All levels of one curve, on all platforms, the baseline first."""

    name: str
    unit: str  # Of the load.
    rate: str
    rate_unit: str
    latency: str
    latency_unit: str
    limit: float
    platforms: tuple[PlatformCurve, ...]


def curves_of(record: CampaignRecord, samples: pl.DataFrame) -> list[Curve]:
    """Return the curves of a campaign that have two levels or more, in the record's order.

    ``samples``: `tare.store.Store.samples`.
    """
    by_curve: dict[str, list[tuple[LevelRecord, WorkloadRecord]]] = {}
    for workload in record.workloads:
        if workload.level is not None:
            by_curve.setdefault(workload.level.curve, []).append((workload.level, workload))
    return [
        _curve(record, sorted(members, key=lambda member: member[0].at), samples)
        for members in by_curve.values()
        if len(members) > 1
    ]


def _curve(
    record: CampaignRecord, members: Sequence[tuple[LevelRecord, WorkloadRecord]], samples: pl.DataFrame
) -> Curve:
    level, workload = members[0]
    units = {metric.name: metric.unit for metric in workload.metrics}
    loads = np.array([level_record.at for level_record, _ in members])
    names = [workload_record.name for _, workload_record in members]
    platforms = dict.fromkeys([record.baseline, *(platform for platform, _ in record.arms)])
    return Curve(
        level.curve, level.unit, level.rate, units[level.rate], level.latency, units[level.latency], level.limit,
        tuple(_platform(platform, level, loads, names, samples) for platform in platforms),
    )  # fmt: skip


def _platform(
    platform: str, level: LevelRecord, loads: Floats, names: Sequence[str], samples: pl.DataFrame
) -> PlatformCurve:
    platform_samples = samples.filter(pl.col("platform") == platform, pl.col("workload").is_in(list(names)))
    blocks = platform_samples["block"].unique().sort().to_list()
    rates, latencies = (_grid(platform_samples, names, blocks, metric) for metric in (level.rate, level.latency))
    figures = np.stack([rates, latencies], axis=1)  # [block, metric, level]
    points = tuple(
        CurvePoint(
            float(load),
            int((~np.isnan(rates[:, at])).sum()),
            _figure(rates[:, at]),
            _band(rates[:, at]),
            _figure(latencies[:, at]),
        )
        for at, load in enumerate(loads)
    )
    return PlatformCurve(
        platform,
        points,
        knee=_estimate(rates, loads, knees.knee),
        saturation=_estimate(rates, loads, knees.saturation),
        best=_of(*knees.over_blocks(figures, lambda mean: knees.best_below(mean[0], mean[1], level.limit)))
        if blocks
        else Estimate(None, None),
    )


def _grid(platform_samples: pl.DataFrame, names: Sequence[str], blocks: Sequence[int], metric: str) -> Floats:
    """Return ``[block, level]`` of a metric: the mean over rounds and arms."""
    means = (
        platform_samples.filter(pl.col("metric") == metric).group_by("block", "workload").agg(pl.col("value").mean())
    )
    grid = np.full((len(blocks), len(names)), np.nan)
    for block, workload, value in means.iter_rows():
        grid[blocks.index(block), names.index(str(workload))] = value
    return grid


def _figure(values: Floats) -> float | None:
    present = values[~np.isnan(values)]
    return float(present.mean()) if present.size else None


def _band(values: Floats) -> Interval | None:
    present = values[~np.isnan(values)]
    return t_interval(present, 0.95) if present.size >= MIN_BLOCKS else None


def _estimate(rates: Floats, loads: Floats, read: knees.Reading) -> Estimate:
    if not rates.shape[0]:
        return Estimate(None, None)
    return _of(*knees.over_blocks(rates, lambda mean: read(loads, mean)))


def _of(point: float, interval: Interval | None) -> Estimate:
    return Estimate(None if np.isnan(point) else point, interval)
