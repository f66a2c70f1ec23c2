"""Samples of one metric as an array of arms, blocks and rounds, and the paired log ratios within its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.estimates.hodges_lehmann import hodges_lehmann_rows
from tare.model import CPU_COST, Arm, Design, Direction, Mode

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Grid:
    """``values[arm, block, round]``; NaN for a missing sample. ``unfit`` counts, by arm, samples without a log."""

    arms: tuple[Arm, ...]
    blocks: Ints
    values: Floats
    unfit: Ints  # Zero, negative, NaN or infinite.
    counts: Ints  # Of all samples, by arm.
    harmonic: bool = False  # The way to total the rounds, see `harmonic`.
    weights: Floats | None = None  # The time of each sample, its weight in the block's total; None: equal times.
    resolution: float | None = None  # The metric's step, if it states one.

    @classmethod
    def of(
        cls, samples: pl.DataFrame, arms: Sequence[Arm], *, harmonic: bool = False, resolution: float | None = None
    ) -> Grid:
        """Lay out the samples of one metric (columns block, platform, replica, round, value; weight, if known)."""
        weighted = "weight" in samples.columns and samples["weight"].null_count() == 0
        return cls.laid_out(
            arms,
            arm_positions(samples, arms),
            samples["block"].to_numpy(),
            samples["round"].to_numpy(),
            samples["value"].to_numpy(),
            samples["weight"].to_numpy() if weighted else None,
            harmonic=harmonic,
            resolution=resolution,
        )

    @classmethod
    def laid_out(
        cls,
        arms: Sequence[Arm],
        arm_at: Ints,
        block: Ints,
        round_number: Ints,
        value: Floats,
        weight: Floats | None = None,
        *,
        harmonic: bool = False,
        resolution: float | None = None,
    ) -> Grid:
        """Lay out one metric: each array has an element a sample; ``arm_at``: its arm's position in ``arms``."""
        blocks, block_at = np.unique(block, return_inverse=True)
        rounds, round_at = np.unique(round_number, return_inverse=True)
        values = np.full((len(arms), blocks.size, rounds.size), np.nan)
        values[arm_at, block_at, round_at] = value
        fit = np.isfinite(value) & (value > 0)
        weights = None
        if weight is not None:
            weights = np.ones_like(values)
            weights[arm_at, block_at, round_at] = weight
        return cls(
            tuple(arms),
            blocks.astype(np.int64),
            values,
            np.bincount(arm_at[~fit], minlength=len(arms)),
            np.bincount(arm_at, minlength=len(arms)),
            harmonic,
            weights,
            resolution,
        )

    def of_platform(self, platform: str) -> list[int]:
        """Return the positions of a platform's arms on the grid's first axis."""
        return [index for index, arm in enumerate(self.arms) if arm.platform == platform]

    def block_medians(self, arm: int) -> Floats:
        """Return, for each block with samples of this arm, the median over the rounds, which is a typical round."""
        rows = self.values[arm]
        present = ~np.isnan(rows).all(axis=1)
        return np.asarray(np.nanmedian(rows[present], axis=1)) if present.any() else np.empty(0)

    def block_values(self, arm: int) -> Floats:
        """Return, for each block with samples of this arm, the work over time (or time over work) of all its rounds."""
        present = ~np.isnan(self.values[arm])
        totals: Floats = self.totals(arm, present)[present.any(axis=1)]
        return totals

    @cached_property
    def step(self) -> float | None:
        """The smallest difference between figures, by `step_of`."""
        return step_of(self.resolution, [rows.ravel() for rows in self.values])

    def totals(self, arm: int, present: Bools) -> Floats:
        """Return, by block, the total of an arm over its ``present[block, round]``; NaN without rounds."""
        weights = np.where(present, 1.0 if self.weights is None else self.weights[arm], 0.0)
        # A zero makes the harmonic mean zero. An unfit sample has no ratio, but it counts in the mean.
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = 1 / self.values[arm] if self.harmonic else self.values[arm]
            means = np.where(present, rows * weights, 0.0).sum(axis=1) / weights.sum(axis=1)
            return np.asarray(1 / means if self.harmonic else means)


@dataclass(frozen=True, slots=True)
class BlockRatios:
    """Log ratios of one arm to the baseline, one for each block in which both have samples."""

    blocks: Ints  # Block numbers.
    logs: Floats
    lone: Bools  # Blocks in which only one of several baseline arms has samples.
    within: Floats  # By block: variance of the mean over its rounds, from their own scatter; NaN below two rounds

    @property
    def single_baseline(self) -> int:
        """The number of blocks in which only one of several baseline arms has samples."""
        return int(self.lone.sum())

    @classmethod
    def joined(cls, parts: Sequence[BlockRatios]) -> BlockRatios:
        """Join the ratios of several groups of blocks."""
        return cls(
            np.concatenate([part.blocks for part in parts]),
            np.concatenate([part.logs for part in parts]),
            np.concatenate([part.lone for part in parts]),
            np.concatenate([part.within for part in parts]),
        )


def step_of(stated: float | None, samples: Sequence[Floats]) -> float | None:
    """Return the smallest difference between a metric's figures: as stated, or else the least seen in any arm.

    ``samples``: of each arm. None if no arm's samples differ. A difference below 1e-9 of the greatest figure is a
    rounding error.
    """
    if stated is not None:
        return stated
    steps = []
    for values in samples:
        ordered = np.sort(values[np.isfinite(values)])
        gaps = np.diff(ordered)
        gaps = gaps[gaps > 1e-9 * np.abs(ordered[-1:]).max(initial=0.0)]
        steps += [float(gaps.min())] if gaps.size else []
    return min(steps, default=None)


def round_ratios(grid: Grid, arm: int, baseline: Sequence[int]) -> Floats:
    """Return log x - mean over the baseline arms of log x, by block and round; NaN if either sample is missing.

    Pairing removes influences that affect all arms of a round alike. No arm may have unfit samples.
    """
    logs = np.log(grid.values[[arm, *baseline]])
    present = ~np.isnan(logs[1:])
    with np.errstate(invalid="ignore"):
        base = np.where(present, logs[1:], 0.0).sum(axis=0) / present.sum(axis=0)
    return np.asarray(logs[0] - base)


def block_ratios(grid: Grid, arm: int, baseline: Sequence[int]) -> BlockRatios:
    """Return, by block, the baseline arms' mean of the Hodges-Lehmann estimate of log x - log arm over rounds.

    The estimate of log x minus the arms' mean would be biased: if rounds are skewed, as beside busy neighbours, that
    contrast of one arm with the mean of two is skewed too, and its pseudomedian is off although nothing differs. The
    difference of two arms alike is symmetric. No arm may have unfit samples.
    """
    logs = np.log(grid.values[[arm, *baseline]])
    estimates = np.full((len(baseline), grid.blocks.size), np.nan)
    for at, difference in enumerate(logs[0] - logs[1:]):
        estimates[at] = hodges_lehmann_rows(difference)
    return _over_arms(grid, arm, baseline, estimates)


def total_ratios(grid: Grid, arm: int, baseline: Sequence[int]) -> BlockRatios:
    """Return, by block, the mean over the baseline arms of the log ratio of the arm's total to theirs.

    Totals cover the rounds that both arms have, so that influences on all arms of a round are in both. A stall in one
    round of ten, which `block_ratios` ignores, counts here with its full weight. No arm may have unfit samples.
    """
    present = ~np.isnan(grid.values)
    estimates = np.full((len(baseline), grid.blocks.size), np.nan)
    for at, base in enumerate(baseline):
        common = present[arm] & present[base]
        estimates[at] = np.log(grid.totals(arm, common)) - np.log(grid.totals(base, common))
    return _over_arms(grid, arm, baseline, estimates)


def reference(grid: Grid, platform: str, design: Design) -> tuple[int, ...]:
    """Return the arms to compare with: both of the baseline's if arms take turns, otherwise its first.

    In a campaign of one platform after the other there is one baseline, as in the studies. In a duet, the first
    baseline arm is every arm's partner.
    """
    arms = tuple(grid.of_platform(platform))
    return arms if design is Design.BLOCKS else arms[:1]


def draws_of(grid: Grid, arm: int, pairs: BlockRatios) -> int:
    """Return the number of samples behind an arm's ratios."""
    return int((~np.isnan(grid.values[arm, np.isin(grid.blocks, pairs.blocks)])).sum())


def weighted(samples: pl.DataFrame, slices: pl.DataFrame) -> pl.DataFrame:
    """Return the samples with the weight of their slice: its time, or for a CPU cost its CPU time; null if unknown.

    ``samples`` and ``slices`` are the frames of `tare.store.Store`.
    """
    key = ["block", "workload", "platform", "replica", "round"]
    times = slices.select(*key, "wall_ns", "cpu_ns")
    cost = pl.col("metric").cast(pl.String) == CPU_COST
    weight = pl.when(cost).then("cpu_ns").otherwise("wall_ns").alias("weight")
    return samples.join(times, on=key, how="left", maintain_order="left").with_columns(weight).drop("wall_ns", "cpu_ns")


def harmonic(direction: Direction, mode: Mode) -> bool:
    """Return True if a metric's total over rounds is their harmonic mean, and not the arithmetic mean.

    Slices take equal times, so rates are averaged directly, and costs of a unit of work by the inverse of the mean of
    their inverses. Iterations of a run are equal work, so there it is the other way round.
    """
    return (direction is Direction.LOWER) is (mode is Mode.SLICES)


def _over_arms(grid: Grid, arm: int, baseline: Sequence[int], estimates: Floats) -> BlockRatios:
    """Return the mean over the baseline's arms of ``estimates[arm, block]``, for the blocks that have an estimate."""
    present = ~np.isnan(estimates)
    used = np.flatnonzero(present.any(axis=0))
    lone = np.count_nonzero(present[:, used], axis=0) < len(estimates)
    within = _within(round_ratios(grid, arm, baseline)[used])
    return BlockRatios(grid.blocks[used], np.nanmean(estimates[:, used], axis=0), lone, within)


def _within(ratios: Floats) -> Floats:
    """Return, by block, the variance of the mean of ``ratios[block, round]``; NaN below two rounds."""
    present = ~np.isnan(ratios)
    counts = np.count_nonzero(present, axis=1)
    filled = np.where(present, ratios, 0.0)
    means = filled.sum(axis=1) / np.maximum(counts, 1)
    squares = np.where(present, (filled - means[:, None]) ** 2, 0.0).sum(axis=1)
    several = counts > 1
    return np.where(several, squares / np.where(several, counts * (counts - 1.0), 1.0), np.nan)


def arm_positions(samples: pl.DataFrame, arms: Sequence[Arm]) -> Ints:
    """Return the position in ``arms`` of each row's arm."""
    positions = pl.DataFrame(
        {
            "platform": pl.Series([arm.platform for arm in arms], dtype=pl.String),
            "replica": pl.Series([arm.replica for arm in arms], dtype=pl.Int8),
            "at": pl.Series(range(len(arms)), dtype=pl.Int64),
        }
    )
    rows = samples.select(pl.col("platform").cast(pl.String), pl.col("replica").cast(pl.Int8))
    return rows.join(positions, on=["platform", "replica"], how="left", maintain_order="left")["at"].to_numpy()
