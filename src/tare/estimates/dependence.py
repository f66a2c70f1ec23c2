"""Correlation of neighbouring blocks, which would make intervals over blocks too narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tare.estimates.grid import BlockRatios

#: With fewer blocks, there are too few orders to shuffle.
MIN_BLOCKS = 6
#: Shuffles of the blocks' order, and the p-value below which a correlation counts as real.
_SHUFFLES, SURE_P = 999, 0.01
_SEED = 20_260_103

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Dependence:
    """Lag-1 autocorrelation of blocks' log ratios, pooled over series, each weighted by its blocks."""

    n_series: int
    n_blocks: int  # Of the longest series.
    seen: float  # The raw estimate, with the bias of a small sample.
    bias: float  # The estimate for blocks in random order; about -1/n.
    deviation: float  # Standard deviation of the estimate for blocks in random order.
    p: float  # Probability that blocks in random order show at least as much.

    @property
    def correlation(self) -> float:
        """The autocorrelation without the bias that independent blocks show."""
        return self.seen - self.bias

    @property
    def interval(self) -> tuple[float, float]:
        """About 95 %, of `correlation`: the width that chance alone gives it."""
        return self.correlation - 1.96 * self.deviation, self.correlation + 1.96 * self.deviation

    @property
    def too_narrow(self) -> float:
        """Factor by which intervals are too narrow, for a first-order autoregression: sqrt((1 + r) / (1 - r))."""
        correlation = min(0.99, max(0.0, self.correlation))
        return math.sqrt((1 + correlation) / (1 - correlation))

    @property
    def is_sure(self) -> bool:
        """True if neighbouring blocks are positively correlated, at the level `SURE_P`."""
        return self.p <= SURE_P


def dependence(series: Sequence[BlockRatios]) -> Dependence | None:
    """Return the correlation of neighbouring blocks' ratios; None below `MIN_BLOCKS`, or without any spread.

    sum z(t) z(t + 1) / sum z(t)^2 over all series, each centred and divided by its SD. It is compared with the same
    figure for the blocks in random order. One order applies to all series, because they share the baseline and so are
    not independent of each other. Where a series lacks a block, the neighbours of that block form no pair.
    """
    varied = [ratios for ratios in series if ratios.logs.size >= MIN_BLOCKS and np.ptp(ratios.logs) > 0]
    if not varied:
        return None
    blocks = np.unique(np.concatenate([ratios.blocks for ratios in varied]))
    table = np.zeros((blocks.size, len(varied)))
    for at, ratios in enumerate(varied):
        table[np.searchsorted(blocks, ratios.blocks), at] = (ratios.logs - ratios.logs.mean()) / ratios.logs.std()
    total = float((table**2).sum())  # This sum does not depend on the order.
    observed = _lagged(table, total)
    rng = np.random.default_rng(_SEED)
    shuffled = np.array([_lagged(table[rng.permutation(blocks.size)], total) for _ in range(_SHUFFLES)])
    p = (1 + np.count_nonzero(shuffled >= observed)) / (1 + _SHUFFLES)
    longest = max(ratios.logs.size for ratios in varied)
    return Dependence(len(varied), longest, observed, float(shuffled.mean()), float(shuffled.std(ddof=1)), float(p))


def _lagged(table: Floats, total: float) -> float:
    return float(np.vdot(table[:-1], table[1:])) / total
