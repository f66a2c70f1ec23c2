"""All pairs of platforms over the same blocks at once: what chance alone would show among so many comparisons."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from tare.analysis.inputs import NoAnswer, level_of, names_of, refuse_extremes, spread
from tare.analysis.intervals import Interval

#: Below this many blocks there are too few patterns of signs (2^(n-1) of them) for the far end of their distribution.
MAX_T_FROM = 8
#: Up to this many blocks every pattern of signs is used, else as many random ones.
_ALL_SIGNS = 12
_PATTERNS = 2_047
_SEED = 20_260_102

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Method(StrEnum):
    """How the pairs were adjusted for their number."""

    MAX_T = "max-t"
    HOLM = "holm"


@dataclass(frozen=True, slots=True)
class Pair:
    """Mean over blocks of ``first`` minus ``second``, with its simultaneous interval and adjusted p value."""

    first: str
    second: str
    difference: Interval
    statistic: float
    p: float  # adjusted for all pairs


@dataclass(frozen=True, slots=True)
class AllPairs:
    """Every pair once, in the order of the names."""

    method: Method
    n_blocks: int  # in which all platforms have a value
    n_left_out: int
    critical: float  # the intervals are difference ± critical x standard error
    pairs: tuple[Pair, ...]


def holm(p: ArrayLike) -> Floats:
    """Adjusted p values in the order given (Holm, 1979). Raises `NoAnswer` for what is no probability."""
    values = np.asarray(p, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise NoAnswer("p values lie between 0 and 1")
    order = np.argsort(values)
    steps = (values.size - np.arange(values.size)) * values[order]
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def all_pairs(values: ArrayLike, names: Sequence[str], *, level: float = 0.95) -> AllPairs:
    """Compare all columns of ``values[block, platform]`` (log figures, or in any unit; NaN where there is none).

    From `MAX_T_FROM` blocks on: t statistics of the paired differences against the distribution of their greatest one
    when the signs of whole blocks are drawn at random (Westfall and Young, 1993, single step). Flipping whole blocks
    keeps what the pairs have in common, so that the price of many comparisons is no higher than it must be. The 95 %
    intervals hold for all pairs at once; one excludes zero exactly when its p is below 0.05. With fewer blocks: paired
    t tests with Holm's p values, and the wider intervals of Bonferroni.

    Skewed noise that differs a lot between platforms misleads this as it misleads every test of a mean: give logs.

    Only blocks in which all platforms have a value are used. Raises `NoAnswer` below two of these, and for a pair
    whose differences are all the same.
    """
    level_of(level)
    table, left_out = _complete(values, names)
    pairs = list(itertools.combinations(range(table.shape[1]), 2))
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    _varied(table, names, pairs)
    differences = table[:, first] - table[:, second]
    n = table.shape[0]
    mean, error = differences.mean(axis=0), differences.std(axis=0, ddof=1) / math.sqrt(n)
    t = mean / error
    patterns = _signs(n) if n >= MAX_T_FROM else np.empty((0, n))
    beyond = math.floor((1 - level) * (1 + len(patterns)) + 1e-9) - 1  # so many patterns may show a greater t
    if beyond >= 0:
        method, greatest = Method.MAX_T, np.sort(_greatest(table, first, second, patterns))
        critical = float(greatest[-1 - beyond])
        p = (1 + len(greatest) - np.searchsorted(greatest, np.abs(t), side="left")) / (1 + len(greatest))
    else:
        method, p = Method.HOLM, holm(2 * stats.t.sf(np.abs(t), n - 1))
        critical = float(stats.t.isf((1 - level) / 2 / len(pairs), n - 1))
    half = critical * error
    found = tuple(
        Pair(names[i], names[j], Interval(*map(float, (m, m - h, m + h))), float(each_t), float(each_p))
        for (i, j), m, h, each_t, each_p in zip(pairs, mean, half, t, p, strict=True)
    )
    return AllPairs(method, n, left_out, critical, found)


def _signs(n: int) -> Floats:
    """Patterns of signs for n blocks; a pattern and its opposite give the same t but for its sign."""
    if n <= _ALL_SIGNS:
        return np.array(list(itertools.product([1.0], *[[1.0, -1.0]] * (n - 1))))
    ones: Floats = np.random.default_rng(_SEED).integers(0, 2, (_PATTERNS, n)).astype(np.float64)
    return 2 * ones - 1


def _greatest(table: Floats, first: Ints, second: Ints, patterns: Floats) -> Floats:
    """For each pattern of signs: the greatest |t| over the pairs of columns, once all means are taken away."""
    n = table.shape[0]
    residuals = table - table.mean(axis=0)
    flipped = patterns @ residuals / n
    mean = flipped[:, first] - flipped[:, second]
    # A square does not change with its sign, so one sum of squares serves all patterns.
    squares = ((residuals[:, first] - residuals[:, second]) ** 2).sum(axis=0)
    variance = np.maximum(squares - n * mean**2, 0.0) / (n - 1)
    # A pattern under which all blocks agree has no variance left: its t is beyond every other.
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) / np.sqrt(variance / n)
    greatest: Floats = np.where(np.isnan(t), 0.0, t).max(axis=1)
    return greatest


def _complete(values: ArrayLike, names: Sequence[str]) -> tuple[Floats, int]:
    """The blocks without holes, and how many have some."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2:
        raise NoAnswer(f"values by block and platform are needed, not an array of {table.ndim} dimensions")
    names_of(names, table.shape[1])
    if table.shape[1] < 2:
        raise NoAnswer("a comparison needs at least two platforms")
    if np.isinf(table).any():
        raise NoAnswer(f"{int(np.isinf(table).sum())} values are infinite: a logarithm of zero?")
    refuse_extremes(table.ravel(), "the values")
    whole = ~np.isnan(table).any(axis=1)
    if whole.sum() < 2:
        lacking = np.isnan(table).sum(axis=0)
        worst = int(lacking.argmax())
        why = f"; {names[worst]} lacks {lacking[worst]} of {table.shape[0]}: leave it out?" if lacking[worst] else ""
        raise NoAnswer(f"all platforms have a value in {whole.sum()} blocks, at least 2 are needed{why}")
    return table[whole], int((~whole).sum())


def _varied(table: Floats, names: Sequence[str], pairs: Sequence[tuple[int, int]]) -> None:
    for i, j in pairs:
        scale = np.abs(table[:, [i, j]]).max()
        difference = table[:, i] - table[:, j]
        if not spread(difference) or np.ptp(difference) <= 1e-12 * scale:
            raise NoAnswer(f"{names[i]} and {names[j]} differ by the same in every block: no noise to compare with")
