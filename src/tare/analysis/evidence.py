"""What the samples of a platform say against the baseline: paired within blocks, or as two samples side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tare.analysis.grid import BlockRatios, Grid, block_ratios
from tare.analysis.intervals import Interval, bca_interval, t_interval, welch_interval
from tare.analysis.verdicts import LogIntervals
from tare.model import Design

_WIDE, _NARROW, _SURE = 0.95, 0.90, 0.99
LEAST = 2


@dataclass(frozen=True, slots=True)
class Evidence:
    """Log ratio of a platform to the baseline. ``pairs``: the blocks that it is from; None where nothing is paired."""

    n_blocks: int
    logs: LogIntervals | None  # None: fewer than two blocks
    bootstrap: Interval | None = None
    pairs: BlockRatios | None = None
    lone: float | None = None  # the log ratio of one block, which has no interval


def reference(grid: Grid, platform: str, design: Design) -> tuple[int, ...]:
    """The arms that others are compared with: both of the baseline's where all run in turn, else its first.

    One platform after the other there is one baseline, as in the studies; a duet has it as every arm's partner.
    """
    arms = tuple(grid.of_platform(platform))
    return arms if design is Design.BLOCKS else arms[:1]


def evidence(grid: Grid, arm: int, baseline: Sequence[int], design: Design) -> Evidence:
    """Compare an arm with the baseline's. Needs arms without unfit samples."""
    if design is Design.SEQUENTIAL:
        return _side_by_side(grid, arm, baseline)
    pairs = block_ratios(grid, arm, baseline)
    count = pairs.logs.size
    if count < LEAST:
        return Evidence(count, None, lone=float(pairs.logs[0]) if count else None)
    logs = LogIntervals(*(t_interval(pairs.logs, level) for level in (_WIDE, _NARROW, _SURE)))
    return Evidence(count, logs, bca_interval(pairs.logs, _WIDE), pairs)


def _side_by_side(grid: Grid, arm: int, baseline: Sequence[int]) -> Evidence:
    """Mean of the log block values against the baseline's, by Welch: block numbers are of different times."""
    values = np.log(grid.block_values(arm))
    others = np.log(np.concatenate([grid.block_values(one) for one in baseline]))
    count = min(values.size, others.size)
    if count < LEAST:
        return Evidence(count, None, lone=float(values.mean() - others.mean()) if count else None)
    found = LogIntervals(*(welch_interval(values, others, level) for level in (_WIDE, _NARROW, _SURE)))
    return Evidence(count, found)
