"""One metric's samples as an array of arms, blocks and rounds, and the paired log ratios within its blocks."""

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
    """``values[arm, block, round]``; NaN where there is no sample. ``unfit`` counts, by arm, samples without a log."""

    arms: tuple[Arm, ...]
    blocks: Ints
    values: Floats
    unfit: Ints  # zero, negative, NaN or infinite
    counts: Ints  # all samples of an arm
    harmonic: bool = False  # how rounds make a total, see `harmonic`
    weights: Floats | None = None  # of each sample in its block's total: a time; None: all rounds took the same
    resolution: float | None = None  # the metric's step, where it states one

    @classmethod
    def of(
        cls, samples: pl.DataFrame, arms: Sequence[Arm], *, harmonic: bool = False, resolution: float | None = None
    ) -> Grid:
        """Lay out the samples of one metric (columns block, platform, replica, round, value; weight, where known)."""
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
        """The positions of a platform's arms on the grid's first axis."""
        return [index for index, arm in enumerate(self.arms) if arm.platform == platform]

    def block_medians(self, arm: int) -> Floats:
        """For each block with samples of this arm: their median over the rounds, which is a typical one."""
        rows = self.values[arm]
        present = ~np.isnan(rows).all(axis=1)
        return np.asarray(np.nanmedian(rows[present], axis=1)) if present.any() else np.empty(0)

    def block_values(self, arm: int) -> Floats:
        """For each block with samples of this arm: work over time (or time over work) of all its rounds together."""
        present = ~np.isnan(self.values[arm])
        totals: Floats = self.totals(arm, present)[present.any(axis=1)]
        return totals

    @cached_property
    def step(self) -> float | None:
        """The least by which figures differ, by `step_of`."""
        return step_of(self.resolution, [rows.ravel() for rows in self.values])

    def totals(self, arm: int, present: Bools) -> Floats:
        """By block, the total of an arm over its ``present[block, round]``; NaN where none is."""
        weights = np.where(present, 1.0 if self.weights is None else self.weights[arm], 0.0)
        # A zero in a harmonic mean is a zero; what is unfit has no ratio, but it has a mean.
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = 1 / self.values[arm] if self.harmonic else self.values[arm]
            means = np.where(present, rows * weights, 0.0).sum(axis=1) / weights.sum(axis=1)
            return np.asarray(1 / means if self.harmonic else means)


@dataclass(frozen=True, slots=True)
class BlockRatios:
    """Log ratios of one arm to the baseline, one a block in which both have samples."""

    blocks: Ints  # block numbers
    logs: Floats
    lone: Bools  # blocks of these in which only one of several baseline arms has samples
    within: Floats  # by block: variance of the mean over its rounds, by their own scatter; NaN below two rounds

    @property
    def single_baseline(self) -> int:
        """The number of blocks in which only one of several baseline arms has samples."""
        return int(self.lone.sum())

    @classmethod
    def joined(cls, parts: Sequence[BlockRatios]) -> BlockRatios:
        """The ratios of several groups of blocks as one."""
        return cls(
            np.concatenate([part.blocks for part in parts]),
            np.concatenate([part.logs for part in parts]),
            np.concatenate([part.lone for part in parts]),
            np.concatenate([part.within for part in parts]),
        )


def step_of(stated: float | None, samples: Sequence[Floats]) -> float | None:
    """The least by which a metric's figures differ: as it states it, else the least that any arm's samples differ by.

    ``samples``: of each arm. None where no arm's differ. What lies closer than 1e-9 of the greatest figure is rounding
    of the arithmetic.
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
    """Log x - mean over the baseline arms of log x, by block and round; NaN where one of both has no sample.

    Pairing removes what hits all arms of a round alike. Needs arms without unfit samples.
    """
    logs = np.log(grid.values[[arm, *baseline]])
    present = ~np.isnan(logs[1:])
    with np.errstate(invalid="ignore"):
        base = np.where(present, logs[1:], 0.0).sum(axis=0) / present.sum(axis=0)
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
        estimates[at] = hodges_lehmann_rows(difference)
    return _over_arms(grid, arm, baseline, estimates)


def total_ratios(grid: Grid, arm: int, baseline: Sequence[int]) -> BlockRatios:
    """In each block the mean over the baseline arms of the log ratio of the arm's total to theirs.

    Totals are over the rounds that both have, so that what hits all arms of a round alike is in both. What
    `block_ratios` passes over, such as a platform that stalls in one round of ten, is in here with its full weight.
    Needs arms without unfit samples.
    """
    present = ~np.isnan(grid.values)
    estimates = np.full((len(baseline), grid.blocks.size), np.nan)
    for at, base in enumerate(baseline):
        common = present[arm] & present[base]
        estimates[at] = np.log(grid.totals(arm, common)) - np.log(grid.totals(base, common))
    return _over_arms(grid, arm, baseline, estimates)


def reference(grid: Grid, platform: str, design: Design) -> tuple[int, ...]:
    """The arms that others are compared with: both of the baseline's where all run in turn, else its first.

    One platform after the other there is one baseline, as in the studies; a duet has it as every arm's partner.
    """
    arms = tuple(grid.of_platform(platform))
    return arms if design is Design.BLOCKS else arms[:1]


def draws_of(grid: Grid, arm: int, pairs: BlockRatios) -> int:
    """How many samples of an arm its ratios are made from."""
    return int((~np.isnan(grid.values[arm, np.isin(grid.blocks, pairs.blocks)])).sum())


def weighted(samples: pl.DataFrame, slices: pl.DataFrame) -> pl.DataFrame:
    """The samples with the weight of their slice: its time, for a cost of CPU its CPU time; null where it has none.

    ``samples`` and ``slices`` are the frames of `tare.store.Store`.
    """
    key = ["block", "workload", "platform", "replica", "round"]
    times = slices.select(*key, "wall_ns", "cpu_ns")
    cost = pl.col("metric").cast(pl.String) == CPU_COST
    weight = pl.when(cost).then("cpu_ns").otherwise("wall_ns").alias("weight")
    return samples.join(times, on=key, how="left", maintain_order="left").with_columns(weight).drop("wall_ns", "cpu_ns")


def harmonic(direction: Direction, mode: Mode) -> bool:
    """Whether a metric's total over rounds is their harmonic mean, and not the arithmetic one.

    Slices take equal times, so that rates have a mean, and costs of a unit of work the inverse of the mean of their
    inverses. What a run does over and over (iterations) is equal work: there it is the other way round.
    """
    return (direction is Direction.LOWER) is (mode is Mode.SLICES)


def _over_arms(grid: Grid, arm: int, baseline: Sequence[int], estimates: Floats) -> BlockRatios:
    """Mean over the baseline's arms of ``estimates[arm, block]``, of the blocks that have one."""
    present = ~np.isnan(estimates)
    used = np.flatnonzero(present.any(axis=0))
    lone = np.count_nonzero(present[:, used], axis=0) < len(estimates)
    within = _within(round_ratios(grid, arm, baseline)[used])
    return BlockRatios(grid.blocks[used], np.nanmean(estimates[:, used], axis=0), lone, within)


def _within(ratios: Floats) -> Floats:
    """By block, the variance of the mean of ``ratios[block, round]``; NaN where fewer than two rounds have one."""
    present = ~np.isnan(ratios)
    counts = np.count_nonzero(present, axis=1)
    filled = np.where(present, ratios, 0.0)
    means = filled.sum(axis=1) / np.maximum(counts, 1)
    squares = np.where(present, (filled - means[:, None]) ** 2, 0.0).sum(axis=1)
    several = counts > 1
    return np.where(several, squares / np.where(several, counts * (counts - 1.0), 1.0), np.nan)


def arm_positions(samples: pl.DataFrame, arms: Sequence[Arm]) -> Ints:
    """The position in ``arms`` of each row's arm."""
    positions = pl.DataFrame(
        {
            "platform": pl.Series([arm.platform for arm in arms], dtype=pl.String),
            "replica": pl.Series([arm.replica for arm in arms], dtype=pl.Int8),
            "at": pl.Series(range(len(arms)), dtype=pl.Int64),
        }
    )
    rows = samples.select(pl.col("platform").cast(pl.String), pl.col("replica").cast(pl.Int8))
    return rows.join(positions, on=["platform", "replica"], how="left", maintain_order="left")["at"].to_numpy()
