"""Amount that a platform adds, in the metric's own unit: a ratio alone does not tell 3 ms from 3 s.

If there is a ratio, the amount is computed from it (`tare.analysis.effects`), so that both agree. This module computes
the amount of a figure without a ratio: the baseline takes nothing, or a sample has no logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tare.estimates.grid import Grid
from tare.estimates.hodges_lehmann import hodges_lehmann
from tare.estimates.intervals import Amount, Interval, t_interval, welch_interval
from tare.model import Design, Family

_LEVEL = 0.95
_NS = 1e9

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class UnitScale:
    """The unit of an amount. ``inverse``: it is a unit of 1 / x, the time of a unit of work if x is a rate."""

    unit: str
    inverse: bool = False

    def per(self, value: float) -> float:
        """Return a figure of the metric in the amount's unit; NaN for the time of a call at a rate of zero."""
        if not self.inverse:
            return value
        return _NS / value if value else math.nan


def scale(unit: str, family: Family, work_unit: str) -> UnitScale:
    """Return the metric's own unit; for a kernel service, whose metric is calls a second, ns a call."""
    if family is Family.KERNEL and unit.endswith("/s"):
        return UnitScale(f"ns/{work_unit}", inverse=True)
    return UnitScale(unit)


def amount(grid: Grid, arm: int, baseline: Sequence[int], design: Design, amount_scale: UnitScale) -> Amount | None:
    """Return the amount that an arm adds to the baseline, in the unit of ``amount_scale``.

    ``arm`` and ``baseline`` are positions. None if no block has both, or if a sample is not positive and finite and the
    amount needs that.

    The estimate is that of the ratio, on differences instead of differences of logarithms. In blocks: ``d[b,r] = x[b,r]
    - y[b,r]`` with each baseline arm's y, their Hodges-Lehmann estimate over the rounds, the mean of these over the
    baseline's arms, and over blocks ``mean ± t(0.975, n - 1) s / sqrt(n)``, at least the metric's step to either side.
    For one platform after the other: Welch's interval of block medians.
    """
    arms = [arm, *baseline]
    if grid.unfit[arms].any() and (amount_scale.inverse or np.isinf(grid.values[arms]).any()):
        return None
    scaled_grid = replace(grid, values=_NS / grid.values, resolution=None) if amount_scale.inverse else grid
    if design is Design.SEQUENTIAL:
        return _side_by_side(scaled_grid, arm, baseline, amount_scale.unit)
    blocks = _block_differences(scaled_grid.values[arm] - scaled_grid.values[list(baseline)])
    if not blocks.size:
        return None
    interval = _at_least_a_step(t_interval(blocks, _LEVEL), scaled_grid.step) if blocks.size > 1 else None
    return Amount(amount_scale.unit, float(blocks.mean()), interval, int(blocks.size))


def _block_differences(differences: Floats) -> Floats:
    """Return one figure for each block from ``[baseline arm, block, round]``, without blocks that lack a pair."""
    block_estimates = []
    for block in np.moveaxis(differences, 1, 0):
        pairs = (arm[~np.isnan(arm)] for arm in block)
        estimates = [hodges_lehmann(arm) for arm in pairs if arm.size]
        if estimates:
            block_estimates.append(float(np.mean(estimates)))
    return np.array(block_estimates)


def _at_least_a_step(interval: Interval, step: float | None) -> Interval | None:
    """Widen an interval to at least a step on either side, because figures are known to half a step.

    None if the width is zero.
    """
    half = max(interval.half_width, step or 0.0)
    return Interval(interval.point, interval.point - half, interval.point + half) if half else None


def _side_by_side(grid: Grid, arm: int, baseline: Sequence[int], unit: str) -> Amount | None:
    values = grid.block_medians(arm)
    baseline_values: Floats = np.concatenate([grid.block_medians(baseline_arm) for baseline_arm in baseline])
    count = min(values.size, baseline_values.size)
    if not count:
        return None
    interval = _at_least_a_step(welch_interval(values, baseline_values, _LEVEL), grid.step) if count > 1 else None
    return Amount(unit, float(values.mean() - baseline_values.mean()), interval, count)
