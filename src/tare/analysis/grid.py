"""One metric's samples as an array of arms, blocks and rounds, and the paired log ratios within its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analysis.hodges_lehmann import hodges_lehmann
from tare.model import Arm

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grid:
    """``values[arm, block, round]``; NaN where there is no sample. ``unfit`` counts, by arm, samples without a log."""

    arms: tuple[Arm, ...]
    blocks: Ints
    values: Floats
    unfit: Ints  # zero, negative, NaN or infinite
    counts: Ints  # all samples of an arm

    @classmethod
    def of(cls, samples: pl.DataFrame, arms: Sequence[Arm]) -> Grid:
        """Lay out the samples of one metric (columns block, platform, replica, round, value)."""
        blocks, block_at = np.unique(samples["block"].to_numpy(), return_inverse=True)
        rounds, round_at = np.unique(samples["round"].to_numpy(), return_inverse=True)
        arm_at = _positions(samples, arms)
        value = samples["value"].to_numpy()
        values = np.full((len(arms), blocks.size, rounds.size), np.nan)
        values[arm_at, block_at, round_at] = value
        fit = np.isfinite(value) & (value > 0)
        return cls(
            tuple(arms),
            blocks.astype(np.int64),
            values,
            np.bincount(arm_at[~fit], minlength=len(arms)),
            np.bincount(arm_at, minlength=len(arms)),
        )

    def of_platform(self, platform: str) -> list[int]:
        """The positions of a platform's arms."""
        return [index for index, arm in enumerate(self.arms) if arm.platform == platform]

    def block_values(self, arm: int) -> Floats:
        """For each block with samples of this arm: their median over the rounds."""
        rows = self.values[arm]
        seen = ~np.isnan(rows).all(axis=1)
        return np.asarray(np.nanmedian(rows[seen], axis=1)) if seen.any() else np.empty(0)


@dataclass(frozen=True, slots=True)
class BlockRatios:
    """Log ratios of one arm to the baseline, one a block in which both have samples."""

    blocks: Ints  # block numbers
    logs: Floats
    single_baseline: int  # blocks of these in which only one of several baseline arms has samples


def round_ratios(grid: Grid, arm: int, baseline: Sequence[int]) -> Floats:
    """Log x - mean over the baseline arms of log x, by block and round; NaN where one of both has no sample.

    Pairing removes what hits all arms of a round alike. Needs arms without unfit samples.
    """
    logs = np.log(grid.values[[arm, *baseline]])
    have = ~np.isnan(logs[1:])
    with np.errstate(invalid="ignore"):
        base = np.where(have, logs[1:], 0.0).sum(axis=0) / have.sum(axis=0)
    return np.asarray(logs[0] - base)


def block_ratios(grid: Grid, arm: int, baseline: Sequence[int]) -> BlockRatios:
    """In each block the mean over the baseline arms of the Hodges-Lehmann estimate of log x - log arm over its rounds.

    Not the estimate of log x less the arms' mean: where rounds are skewed, as beside busy neighbours, that contrast of
    one with two is skewed too, and its pseudomedian is off although nothing differs. The difference of two alike is
    symmetric. Needs arms without unfit samples.
    """
    logs = np.log(grid.values[[arm, *baseline]])
    estimates = np.full((len(baseline), grid.blocks.size), np.nan)
    for at, difference in enumerate(logs[0] - logs[1:]):
        usable = ~np.isnan(difference)
        for block in np.flatnonzero(usable.any(axis=1)):
            estimates[at, block] = hodges_lehmann(difference[block, usable[block]])
    there = ~np.isnan(estimates)
    used = np.flatnonzero(there.any(axis=0))
    lone = np.count_nonzero(there[:, used], axis=0) < len(baseline)
    return BlockRatios(grid.blocks[used], np.nanmean(estimates[:, used], axis=0), int(lone.sum()))


def _positions(samples: pl.DataFrame, arms: Sequence[Arm]) -> Ints:
    """The position in ``arms`` of each row's arm."""
    known = pl.DataFrame(
        {
            "platform": pl.Series([arm.platform for arm in arms], dtype=pl.String),
            "replica": pl.Series([arm.replica for arm in arms], dtype=pl.Int8),
            "at": pl.Series(range(len(arms)), dtype=pl.Int64),
        }
    )
    rows = samples.select(pl.col("platform").cast(pl.String), pl.col("replica").cast(pl.Int8))
    return rows.join(known, on=["platform", "replica"], how="left", maintain_order="left")["at"].to_numpy()
