"""Correlation of neighbouring blocks: where there is any, intervals over blocks are too narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tare.estimates.grid import BlockRatios

#: With fewer blocks their order can be shuffled in too few ways.
MIN_BLOCKS = 6
#: Shuffles of the blocks' order; and how rare among them a correlation is that is called one.
_SHUFFLES, SURE_P = 999, 0.01
_SEED = 20_260_103

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Dependence:
    """Lag-1 autocorrelation of blocks' log ratios, pooled over series, each of which counts by its blocks."""

    n_series: int
    n_blocks: int  # of the longest series
    seen: float  # as it comes out, with the small sample's bias in it
    bias: float  # what blocks in random order show; about -1/n
    deviation: float  # by how much that varies, a standard deviation
    p: float  # that blocks in random order show as much or more

    @property
    def correlation(self) -> float:
        """The autocorrelation less the bias that independent blocks show."""
        return self.seen - self.bias

    @property
    def interval(self) -> tuple[float, float]:
        """About 95 %, of `correlation`: as wide as chance alone makes it."""
        return self.correlation - 1.96 * self.deviation, self.correlation + 1.96 * self.deviation

    @property
    def too_narrow(self) -> float:
        """By what factor intervals are too narrow, for a first-order autoregression: sqrt((1 + r) / (1 - r))."""
        correlation = min(0.99, max(0.0, self.correlation))
        return math.sqrt((1 + correlation) / (1 - correlation))

    @property
    def is_sure(self) -> bool:
        """Whether neighbouring blocks are positively correlated, at the level `SURE_P`."""
        return self.p <= SURE_P


def dependence(series: Sequence[BlockRatios]) -> Dependence | None:
    """The correlation of a block's ratio with the next one's; None below `MIN_BLOCKS`, or without any spread.

    sum z(t) z(t + 1) / sum z(t)^2 over all series, each less its mean and over its SD. It is held to the same figure
    with the blocks in random order, one order for all series: they share the baseline, so they are not independent of
    each other. Where a series lacks a block its neighbours there are no pair.
    """
    varied = [ratios for ratios in series if ratios.logs.size >= MIN_BLOCKS and np.ptp(ratios.logs) > 0]
    if not varied:
        return None
    blocks = np.unique(np.concatenate([ratios.blocks for ratios in varied]))
    table = np.zeros((blocks.size, len(varied)))
    for at, ratios in enumerate(varied):
        table[np.searchsorted(blocks, ratios.blocks), at] = (ratios.logs - ratios.logs.mean()) / ratios.logs.std()
    total = float((table**2).sum())  # in whatever order
    observed = _lagged(table, total)
    rng = np.random.default_rng(_SEED)
    shuffled = np.array([_lagged(table[rng.permutation(blocks.size)], total) for _ in range(_SHUFFLES)])
    p = (1 + np.count_nonzero(shuffled >= observed)) / (1 + _SHUFFLES)
    longest = max(ratios.logs.size for ratios in varied)
    return Dependence(len(varied), longest, observed, float(shuffled.mean()), float(shuffled.std(ddof=1)), float(p))


def _lagged(table: Floats, total: float) -> float:
    return float(np.vdot(table[:-1], table[1:])) / total
