"""Block-by-block comparison of one arm with the baseline's arms, the input of all estimates and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tare.estimates.grid import BlockRatios, Grid, block_ratios, draws_of, total_ratios
from tare.estimates.intervals import MIN_BLOCKS
from tare.estimates.looks import Look, Looks, Rounding, rounding_of


@dataclass(frozen=True, slots=True)
class Contrast:
    """The log ratios of an arm to the baseline's. ``arms``: the number of baseline arms in the comparison."""

    pairs: BlockRatios
    totals: BlockRatios | None  # Of whole blocks' work over time; None: a block has one round.
    draws: int  # Number of samples behind the ratios.
    arms: int
    rounding: Rounding | None = None
    has_steps: bool = False  # The metric states its resolution.

    @property
    def n_blocks(self) -> int:
        """Blocks in which both have samples."""
        return self.pairs.logs.size

    def looks(self) -> Looks | None:
        """Both means, each with the spread of its own blocks; None below two blocks."""
        if self.n_blocks < MIN_BLOCKS:
            return None
        totals = None if self.totals is None else Look.over_blocks(self.totals.logs, self.rounding)
        return Looks(Look.over_blocks(self.pairs.logs, self.rounding), totals)


def contrast(grid: Grid, arm: int, baseline: Sequence[int]) -> Contrast:
    """Compare an arm with the baseline's, all given by position. No arm may have unfit samples (`Grid.unfit`)."""
    pairs = block_ratios(grid, arm, baseline)
    draws = draws_of(grid, arm, pairs)
    totals = total_ratios(grid, arm, baseline) if draws > pairs.logs.size else None
    steps = rounding(grid, arm, baseline) if pairs.logs.size else None
    return Contrast(pairs, totals, draws, len(baseline), steps, grid.resolution is not None)


def rounding(grid: Grid, arm: int, baseline: Sequence[int]) -> Rounding | None:
    """Return the error of the ratio caused by the metric's resolution, or None if no resolution is known."""
    rounds = int(np.isfinite(grid.values[arm]).sum(axis=1).max())
    base = grid.values[list(baseline)]
    return rounding_of(grid.step, grid.values[arm], base, arms=len(baseline), rounds=rounds)
