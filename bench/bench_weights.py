"""Should a quiet block have a larger weight than a noisy one? Weights by a block's own noise, tried on known truths.

Paule and Mandel's variance between blocks (J. Res. Nat. Bur. Stand. 87, 1982) and Hartung and Knapp's interval (Stat.
Med. 20, 2001), a block's own variance by a delete-one jackknife of its estimate over rounds, beside the plain mean with
Student's interval that `tare` reports. Two kinds of worlds: a host that is noisy in some blocks, for all arms alike;
and a platform that itself is slow in some rounds of some blocks, which A/A comparisons cannot show.

    .venv/bin/python bench/bench_weights.py [CAMPAIGNS] [FILE.tare ...]

With files of `tare calibrate`: the same on their real comparisons of native with itself, ten blocks each.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import optimize, stats

from tare.estimates.grid import Grid
from tare.estimates.hodges_lehmann import hodges_lehmann
from tare.estimates.intervals import Interval, t_interval
from tare.store import read_store

Floats = NDArray[np.float64]
ROUNDS, BLOCKS = 12, 10
#: Weight, in rounds, of the mean variance of all blocks beside a block's own: that is uncertain with few rounds.
PRIOR = 8


def paule_mandel(values: Floats, variances: Floats) -> float:
    """The variance between blocks at which the weighted squares are k - 1; zero where they are fewer without."""

    def excess(tau2: float) -> float:
        return squares(values, variances + tau2) - (values.size - 1)

    most = float(((values - values.mean()) ** 2).sum()) / (values.size - 1)
    return 0.0 if excess(0.0) <= 0 else float(optimize.brentq(excess, 0.0, most))


def hartung_knapp(values: Floats, variances: Floats) -> Interval:
    """Weighted mean and its 95 % interval, ``m ± t(k - 1) sqrt(sum w (y - m)² / ((k - 1) sum w))``."""
    total = variances + paule_mandel(values, variances)
    weights = 1 / total
    mean = float((weights * values).sum() / weights.sum())
    error = math.sqrt(squares(values, total) / ((values.size - 1) * float(weights.sum())))
    half = float(stats.t.ppf(0.975, values.size - 1)) * error
    return Interval(mean, mean - half, mean + half)


def squares(values: Floats, total: Floats) -> float:
    """Weighted squares about the weighted mean."""
    weights = 1 / total
    mean = (weights * values).sum() / weights.sum()
    return float((weights * (values - mean) ** 2).sum())


def estimate(differences: Floats) -> tuple[float, float]:
    """A block's figure, as in `tare.estimates.grid`, and its variance; ``differences[baseline arm, round]``."""

    def figure(differences: Floats) -> float:
        return float(np.mean([hodges_lehmann(row) for row in differences]))

    rounds = differences.shape[1]
    without = np.array([figure(np.delete(differences, dropped, axis=1)) for dropped in range(rounds)])
    return figure(differences), (rounds - 1) * float(without.var())


def pooled(blocks: list[tuple[float, float]], prior: float) -> Interval:
    """The weighted interval, each block's variance drawn towards the mean of all."""
    values, variances = (np.array(column) for column in zip(*blocks, strict=True))
    drawn = (prior * variances.mean() + (ROUNDS - 1) * variances) / (prior + ROUNDS - 1)
    return hartung_knapp(values, np.maximum(drawn, 1e-3 * drawn.mean()))


@dataclass(frozen=True)
class World:
    """A simulated host and platform, with noise as log ratios; ``restless``: log SD of the noise between blocks."""

    name: str
    restless: float = 0.0
    sick: float = 0.0  # share of blocks in which the platform itself has slow rounds
    slow_share: float = 0.3  # of their rounds
    slower: float = 0.3  # log ratio of such a round
    noise: float = 0.02

    def block(self, rng: np.random.Generator) -> Floats:
        """Log ratios of the platform to each of two baseline arms, by round."""
        size = self.noise * math.exp(rng.normal(0, self.restless))
        platform, first, second = rng.normal(0, size, (3, ROUNDS))
        if rng.random() < self.sick:
            platform = platform + self.slower * (rng.random(ROUNDS) < self.slow_share)
        return np.stack([platform - first, platform - second])

    def truth(self, rng: np.random.Generator) -> float:
        """The mean over very many blocks of their figures."""
        return float(np.mean([estimate(self.block(rng))[0] for _ in range(3000)])) if self.sick else 0.0


WORLDS = (
    World("all blocks alike"),
    World("a restless host", restless=0.8),
    World("the platform is slow by 26 % in 30 % of the rounds of 30 % of the blocks", sick=0.3),
    World("by 50 % in 25 % of the rounds of 20 %", sick=0.2, slow_share=0.25, slower=0.7),
)


def real(file: Path) -> Iterator[list[Floats]]:
    """Comparisons of native with itself: each the differences of ten blocks."""
    with read_store(file) as store:
        record, samples = store.record, store.samples()
    for metric in record.workloads[0].metrics:
        grid = Grid.of(samples.filter(pl.col("metric").cast(pl.String) == metric.name), record.all_arms())
        logs = np.log(grid.values)
        for first in range(0, len(grid.arms) - 2, 3):
            differences = [logs[first, at] - logs[first + 1 : first + 3, at] for at in range(grid.blocks.size)]
            complete = [block[:, ~np.isnan(block).any(axis=0)] for block in differences]
            whole = [block for block in complete if block.shape[1] >= 4]
            for begin in range(0, len(whole) - BLOCKS + 1, BLOCKS):
                yield whole[begin : begin + BLOCKS]


def main() -> None:
    """Print a row for each world."""
    files = [Path(name) for name in sys.argv[1:] if name.endswith(".tare")]
    campaigns = int(next((word for word in sys.argv[1:] if word.isdecimal()), 400))
    rng = np.random.default_rng(20_261_122)
    print("| world | holds the truth: Student | weighted | weighted, drawn | width of these two | their bias |")
    print("| --- | --- | --- | --- | --- | --- |")
    for world in WORLDS:
        truth = world.truth(rng)
        estimates = [[estimate(world.block(rng)) for _ in range(BLOCKS)] for _ in range(campaigns)]
        print(row(world.name, estimates, truth))
    if files:
        estimates = [[estimate(block) for block in blocks] for file in files for blocks in real(file)]
        print(row(f"native against itself, {len(estimates)} comparisons", estimates, 0.0))


def row(name: str, estimates: list[list[tuple[float, float]]], truth: float) -> str:
    """Coverage of the three ways, median width of the weighted ones beside Student's, and the weighted ones' bias."""
    ways = [
        [t_interval(np.array([value for value, _ in blocks]), 0.95) for blocks in estimates],
        [pooled(blocks, 0.0) for blocks in estimates],
        [pooled(blocks, PRIOR) for blocks in estimates],
    ]
    held = [np.mean([interval.low <= truth <= interval.high for interval in way]) for way in ways]
    widths = [np.median([interval.half_width for interval in way]) for way in ways]
    bias = [np.mean([interval.point for interval in way]) - truth for way in ways[1:]]
    shown = [f"{share:.0%}" for share in held]
    narrower = " and ".join(f"{width / widths[0]:.2f}" for width in widths[1:])
    return f"| {name} | {' | '.join(shown)} | {narrower} | {bias[0]:+.2%} and {bias[1]:+.2%} |"


if __name__ == "__main__":
    sys.exit(main())
