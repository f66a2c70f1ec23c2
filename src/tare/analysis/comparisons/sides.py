"""A platform's figure in a campaign, block by block: the input of comparisons between campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analysis.grids import grid_of
from tare.estimates.grid import Grid, block_ratios
from tare.estimates.looks import Spread
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord

Floats = NDArray[np.float64]


class Way(StrEnum):
    """The figures of two sides that are compared."""

    RELATIVE = "relative"  # Overheads against each campaign's own baseline.
    ABSOLUTE = "absolute"  # The figures themselves.
    PLATFORMS = "platforms"  # Two platforms, block by block.
    INSTRUCTIONS = "instructions"  # Executed instructions, by range over machines (`tare.features.diff.counted`).


@dataclass(frozen=True, slots=True)
class MetricSide:
    """One metric of one platform: a log for each block, and the mean in its unit.

    ``spread``: of the mean of the logs, moderated by the campaign's other figures; None: from its own blocks alone.
    """

    logs: Floats
    mean: float | None
    unfit: bool
    spread: Spread | None = None


def sides_of(
    record: CampaignRecord, workload: WorkloadRecord, metric: MetricRecord, part: pl.DataFrame | None, way: Way
) -> dict[str, MetricSide]:
    """Return the sides by platform, without platforms that have no figure."""
    if part is None:
        return {}
    grid = grid_of(record, workload, metric, part)
    names = [platform.name for platform in record.platforms if way is Way.ABSOLUTE or platform.name != record.baseline]
    sides = {name: side_of(grid, name, way, record.baseline) for name in names}
    return {name: side for name, side in sides.items() if side.mean is not None}


def side_of(grid: Grid, name: str, way: Way, baseline: str) -> MetricSide:
    """Return one platform's figures in logs, one for each block; blocks without a figure are left out.

    The logs are of ratios to the baseline, or of the figures themselves for ``Way.ABSOLUTE``.
    """
    if way is not Way.ABSOLUTE:
        whole = aligned(grid, name, baseline)
        return replace(whole, logs=whole.logs[~np.isnan(whole.logs)])
    mean, unfit = _described(grid, grid.of_platform(name))
    if unfit or mean is None:
        return MetricSide(np.empty(0), mean, unfit)
    logs = np.log(np.stack([_by_block(grid, arm) for arm in grid.of_platform(name)]))
    present = ~np.isnan(logs).all(axis=0)
    return MetricSide(np.nanmean(logs[:, present], axis=0), mean, unfit)


def aligned(grid: Grid, name: str, baseline: str) -> MetricSide:
    """Return a side with a log ratio to the baseline for each of the grid's blocks, NaN if missing."""
    arms = grid.of_platform(name)
    mean, unfit = _described(grid, arms)
    unfit = unfit or bool(grid.unfit[grid.of_platform(baseline)].any())
    if unfit or mean is None:
        return MetricSide(np.full(grid.blocks.size, np.nan), mean, unfit)
    return MetricSide(log_ratios(grid, name, baseline), mean, unfit)


def log_ratios(grid: Grid, name: str, baseline: str) -> Floats:
    """Return a platform's log ratio to the baseline by block, NaN if missing; the baseline's own is zero."""
    base = grid.of_platform(baseline)
    column = np.full(grid.blocks.size, np.nan)
    if name == baseline:
        column[~np.isnan(grid.values[base]).all(axis=(0, 2))] = 0.0
        return column
    pairs = block_ratios(grid, grid.of_platform(name)[0], base)
    column[np.searchsorted(grid.blocks, pairs.blocks)] = pairs.logs
    return column


def _by_block(grid: Grid, arm: int) -> Floats:
    """Return an arm's medians over the rounds for each of the grid's blocks, NaN if missing."""
    medians = np.full(grid.blocks.size, np.nan)
    medians[~np.isnan(grid.values[arm]).all(axis=1)] = grid.block_medians(arm)
    return medians


def _described(grid: Grid, arms: Sequence[int]) -> tuple[float | None, bool]:
    if not grid.counts[arms].any():
        return None, False
    unfit = bool(grid.unfit[arms].any())
    values = np.concatenate([grid.block_medians(arm) for arm in arms])
    values = values[np.isfinite(values)]
    return (float(values.mean()) if values.size else None), unfit
