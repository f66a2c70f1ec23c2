"""Log ratios of a platform to the baseline with their intervals: paired within blocks, or of two separate samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tare import lazily
from tare.analysis.hidden import BLOCKS_WITHOUT_SPREAD, Hidden, Trials, hidden
from tare.analysis.verdicts import LogIntervals
from tare.estimates.grid import BlockRatios, Grid, block_ratios, draws_of, total_ratios
from tare.estimates.intervals import MIN_BLOCKS, Interval, bca_interval, t_interval, welch_interval
from tare.model import Design

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")

_WIDE, _NARROW = 0.95, 0.90
#: Against false alarms: one in a hundred, which two looks at the same blocks share (Bonferroni).
_SURE, _SURE_OF_TWO = 0.99, 0.995

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rounding:
    """The error of a log ratio by the metric's steps: constant (``floor``), and random in one block (``sd``)."""

    step: float
    floor: float
    sd: float

    def half_width(self, level: float, n_blocks: int) -> float:
        """Half the width that an interval over so many blocks has at least, as a log."""
        at_random = float(special.stdtrit(n_blocks - 1, (1 + level) / 2)) * self.sd / math.sqrt(n_blocks)
        return max(self.floor, at_random)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Log ratio of a platform to the baseline. ``pairs``: the blocks that it is from; None where nothing is paired."""

    n_blocks: int
    logs: LogIntervals | None  # of the typical round; None: fewer than two blocks
    bootstrap: Interval | None = None
    pairs: BlockRatios | None = None
    totals: LogIntervals | None = None  # of work over time of whole blocks; None where it is the same: one round each
    total_pairs: BlockRatios | None = None
    hidden: Hidden = field(default_factory=Hidden)
    rounding: Rounding | None = None  # None: nothing is known of steps
    same: bool = False  # no block differs from another, and no step explains it
    lone: float | None = None  # the log ratio of one block, which has no interval


def evidence(grid: Grid, arm: int, baseline: Sequence[int], design: Design, trials: Trials | None = None) -> Evidence:
    """Compare an arm with the baseline's, all by position. Needs arms without unfit samples (`Grid.unfit`)."""
    if design is Design.SEQUENTIAL:
        return _side_by_side(grid, arm, baseline, trials or Trials())
    pairs = block_ratios(grid, arm, baseline)
    count = pairs.logs.size
    if count < MIN_BLOCKS:
        return Evidence(count, None, lone=float(pairs.logs[0]) if count else None)
    rounding = _rounding(grid, arm, baseline)
    draws = draws_of(grid, arm, pairs)
    total_pairs = total_ratios(grid, arm, baseline) if draws > count else None
    sure = _SURE if total_pairs is None else _SURE_OF_TWO
    same = _same(grid, pairs.logs)
    return Evidence(
        count,
        _levels(partial(t_interval, pairs.logs), sure, count, rounding),
        bca_interval(pairs.logs, _WIDE),
        pairs,
        _totals(total_pairs, rounding, sure),
        total_pairs,
        hidden(draws, count, trials or Trials(), too_few=same and count < BLOCKS_WITHOUT_SPREAD),
        rounding,
        same,
    )


def _side_by_side(grid: Grid, arm: int, baseline: Sequence[int], trials: Trials) -> Evidence:
    """Mean of the log block values against the baseline's, by Welch: block numbers are of different times."""
    several = grid.values.shape[2] > 1
    looks = [grid.block_medians, grid.block_values] if several else [grid.block_medians]
    sides = [
        (np.log(look(arm)), np.log(np.concatenate([look(baseline_arm) for baseline_arm in baseline]))) for look in looks
    ]
    count = min(side.size for side in sides[0])
    if count < MIN_BLOCKS:
        arm_logs, base_logs = sides[0]
        return Evidence(count, None, lone=float(arm_logs.mean() - base_logs.mean()) if count else None)
    rounding = _rounding(grid, arm, baseline)
    sure = _SURE_OF_TWO if several else _SURE
    logs, *totals = (
        _levels(partial(welch_interval, arm_logs, base_logs), sure, count, rounding) for arm_logs, base_logs in sides
    )
    same = all(_same(grid, side) for side in sides[0])
    draws = int((~np.isnan(grid.values[arm])).sum())
    unseen = hidden(draws, count, trials, too_few=same and count < BLOCKS_WITHOUT_SPREAD)
    return Evidence(count, logs, totals=totals[0] if totals else None, hidden=unseen, rounding=rounding, same=same)


def _totals(pairs: BlockRatios | None, rounding: Rounding | None, sure: float) -> LogIntervals | None:
    if pairs is None:
        return None
    return _levels(partial(t_interval, pairs.logs), sure, pairs.logs.size, rounding)


def _levels(
    interval: Callable[[float], Interval], sure: float, n_blocks: int, rounding: Rounding | None
) -> LogIntervals:
    """The interval at each level, at least as wide as the metric's steps alone make it."""

    def granted(level: float) -> Interval:
        least = rounding.half_width(level, n_blocks) if rounding is not None else 0.0
        unrounded = interval(level)
        return (
            unrounded
            if unrounded.half_width >= least
            else Interval(unrounded.point, unrounded.point - least, unrounded.point + least)
        )

    return LogIntervals(granted(_WIDE), granted(_NARROW), granted(sure))


def _rounding(grid: Grid, arm: int, baseline: Sequence[int]) -> Rounding | None:
    """A figure is known to half a step: on either side that stays, however many blocks show the same.

    As an error at random it is uniform over the step, which has an SD of step / sqrt(12).
    """
    step = grid.step
    if step is None:
        return None
    arm_step = step / float(np.nanmedian(grid.values[arm]))
    base_step = step / float(np.nanmedian(grid.values[list(baseline)]))
    rounds = np.isfinite(grid.values[arm]).sum(axis=1).max()
    sd = math.hypot(arm_step, base_step / math.sqrt(len(baseline))) / math.sqrt(12 * rounds)
    return Rounding(step, math.log1p(arm_step / 2) + math.log1p(base_step / 2), sd)


def _same(grid: Grid, logs: Floats) -> bool:
    return bool(grid.resolution is None and np.ptp(logs) <= 1e-9)
