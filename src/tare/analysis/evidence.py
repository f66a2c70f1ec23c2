"""Log ratios of a platform to the baseline, paired within blocks or from two separate samples, with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tare.analysis.hidden import BLOCKS_WITHOUT_SPREAD, Hidden, Trials, hidden
from tare.estimates.contrasts import Contrast, rounding
from tare.estimates.contrasts import contrast as compared
from tare.estimates.grid import BlockRatios, Floats, Grid
from tare.estimates.intervals import MIN_BLOCKS
from tare.estimates.looks import Look, Looks, Rounding
from tare.model import Design


@dataclass(frozen=True, slots=True)
class Evidence:
    """Log ratio of a platform to the baseline. ``pairs``: its blocks; None if nothing is paired."""

    n_blocks: int
    looks: Looks | None  # None: fewer than two blocks.
    pairs: BlockRatios | None = None
    total_pairs: BlockRatios | None = None
    hidden: Hidden = field(default_factory=Hidden)
    rounding: Rounding | None = None  # None: no step is known.
    same: bool = False  # No block differs from another, and no step explains it.
    lone: float | None = None  # The log ratio of a single block, which has no interval.


def evidence(
    grid: Grid, arm: int, baseline: Sequence[int], design: Design = Design.BLOCKS, trials: Trials | None = None
) -> Evidence:
    """Return the evidence of one comparison by itself, without variance from others. Arms are positions.

    No arm may have unfit samples (`Grid.unfit`).
    """
    if design is Design.SEQUENTIAL:
        return side_by_side(grid, arm, baseline, trials)
    alone = compared(grid, arm, baseline)
    return paired(alone, alone.looks(), trials)


def paired(contrast: Contrast, looks: Looks | None, trials: Trials | None = None) -> Evidence:
    """Return the evidence of blocks. ``looks``: of the contrast, moderated as they are to be judged."""
    count, logs = contrast.n_blocks, contrast.pairs.logs
    if looks is None:
        return Evidence(count, None, lone=float(logs[0]) if count else None)
    same = not contrast.has_steps and _same(logs)
    unseen = hidden(contrast.draws, count, trials or Trials(), too_few=same and count < BLOCKS_WITHOUT_SPREAD)
    return Evidence(count, looks, contrast.pairs, contrast.totals, unseen, contrast.rounding, same)


def side_by_side(grid: Grid, arm: int, baseline: Sequence[int], trials: Trials | None = None) -> Evidence:
    """Return the mean of the log block values against the baseline's, by Welch: block numbers are of different times.

    No arm may have unfit samples (`Grid.unfit`).
    """
    several = grid.values.shape[2] > 1
    estimates = [grid.block_medians, grid.block_values] if several else [grid.block_medians]
    sides = [
        (np.log(estimate(arm)), np.log(np.concatenate([estimate(base) for base in baseline]))) for estimate in estimates
    ]
    count = min(side.size for side in sides[0])
    if count < MIN_BLOCKS:
        arm_logs, base_logs = sides[0]
        return Evidence(count, None, lone=float(arm_logs.mean() - base_logs.mean()) if count else None)
    steps = rounding(grid, arm, baseline)
    typical, *totals = (Look.side_by_side(arm_logs, base_logs, steps) for arm_logs, base_logs in sides)
    same = grid.resolution is None and all(map(_same, sides[0]))
    draws = int((~np.isnan(grid.values[arm])).sum())
    unseen = hidden(draws, count, trials or Trials(), too_few=same and count < BLOCKS_WITHOUT_SPREAD)
    looks = Looks(typical, totals[0] if totals else None)
    return Evidence(count, looks, hidden=unseen, rounding=steps, same=same)


def _same(logs: Floats) -> bool:
    return bool(np.ptp(logs) <= 1e-9)
