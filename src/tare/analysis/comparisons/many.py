"""All pairs of platforms over the same blocks at once, corrected for what chance shows among so many comparisons."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tare import lazily
from tare.analysis.input_checks import level_of, names_of, refuse_extremes, spread
from tare.analysis.refusals import NoAnswer, RefusalKind, RefusedAnswer
from tare.estimates.intervals import Interval

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")

#: With fewer blocks, there are too few patterns of signs (2^(n-1)) for the far end of their distribution.
MAX_T_FROM = 8
#: Up to this many blocks, every pattern of signs is used; above it, as many random patterns.
_ALL_SIGNS = 12
_PATTERNS = 2_047
_SEED = 20_260_102

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Method(StrEnum):
    """The correction for the number of pairs."""

    MAX_T = "max-t"
    HOLM = "holm"


@dataclass(frozen=True, slots=True)
class Pair:
    """Mean over blocks of ``first`` minus ``second``, with its simultaneous interval and adjusted p value."""

    first: str
    second: str
    difference: Interval
    statistic: float
    p: float  # Adjusted for all pairs.
    n_blocks: int  # Blocks in which both have a value.
    critical: float  # The interval is difference ± critical x standard error.


@dataclass(frozen=True, slots=True)
class AllPairs:
    """Every pair once, in the order of the names: in ``pairs``, or in ``unanswered`` (each with its two names)."""

    method: Method
    n_blocks: int  # Blocks in which all platforms have a value.
    n_left_out: int  # Blocks in which some lack a value: the pairs of the others use them.
    critical: float  # The largest of the pairs'.
    pairs: tuple[Pair, ...]
    unanswered: tuple[RefusedAnswer, ...] = ()


def holm(p: ArrayLike) -> Floats:
    """Return adjusted p values in the given order (Holm, 1979). Raises `NoAnswer` for invalid probabilities."""
    values = np.asarray(p, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise NoAnswer(RefusalKind.P_VALUES)
    order = np.argsort(values)
    steps = (values.size - np.arange(values.size)) * values[order]
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def all_pairs(values: ArrayLike, names: Sequence[str], *, level: float = 0.95) -> AllPairs:
    """Compare all columns of ``values[block, platform]`` (log figures, or in any unit; NaN for a missing value).

    A pair uses the blocks in which both have a value. If every pair has `MAX_T_FROM` blocks, the t statistics of the
    paired differences are compared with the distribution of their maximum under random signs of whole blocks (Westfall
    and Young, 1993, single step). Flipping whole blocks keeps the pairs' dependence, so that many comparisons cost no
    more power than they must. A block that a pair lacks takes no part in its t. The 95 % intervals hold for all pairs
    at once; an interval excludes zero exactly when its p is at most 0.05. With fewer blocks: paired t tests with Holm's
    p values, and the wider intervals of Bonferroni, each with its own degrees of freedom.

    Skewed noise that differs a lot between platforms misleads this test, like every test of a mean: pass logs.

    A pair with fewer than two blocks, or whose differences are all equal, is unanswered. Raises `NoAnswer` if all are,
    with the first pair's reason.
    """
    level_of(level)
    table = _table(values, names)
    pairs = list(itertools.combinations(range(table.shape[1]), 2))
    gaps = {pair: _no_answer(table, names, *pair) for pair in pairs}
    unanswered = tuple(gap for gap in gaps.values() if gap is not None)
    pairs = [pair for pair in pairs if gaps[pair] is None]
    if not pairs:
        raise NoAnswer(unanswered[0].kind, *unanswered[0].names, **unanswered[0].numbers)
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    differences = table[:, first] - table[:, second]
    n = np.count_nonzero(~np.isnan(differences), axis=0)
    mean, error = np.nanmean(differences, axis=0), np.nanstd(differences, axis=0, ddof=1) / np.sqrt(n)
    t = mean / error
    patterns = _signs(len(table)) if n.min() >= MAX_T_FROM else np.empty((0, len(table)))
    beyond = math.floor((1 - level) * (1 + len(patterns)) + 1e-9) - 1  # Number of patterns that may show a larger t.
    if beyond >= 0:
        method, greatest = Method.MAX_T, np.sort(_greatest(differences - mean, n, patterns))
        critical = np.full(len(pairs), greatest[-1 - beyond])
        p = (1 + len(greatest) - np.searchsorted(greatest, np.abs(t), side="left")) / (1 + len(greatest))
    else:
        method, p = Method.HOLM, holm(2 * special.stdtr(n - 1, -np.abs(t)))
        critical = -special.stdtrit(n - 1, (1 - level) / 2 / len(pairs))
    half = critical * error
    columns = (mean, half, t, p, n, critical)
    compared = tuple(
        Pair(names[i], names[j], Interval(m, m - h, m + h), each_t, each_p, each_n, each_critical)
        for (i, j), m, h, each_t, each_p, each_n, each_critical in zip(
            pairs, *(column.tolist() for column in columns), strict=True
        )
    )
    whole = int((~np.isnan(table).any(axis=1)).sum())
    return AllPairs(method, whole, len(table) - whole, float(critical.max()), compared, unanswered)


@functools.lru_cache(maxsize=4)
def _signs(n: int) -> Floats:
    """Return patterns of signs for n blocks. A pattern and its opposite give the same |t|."""
    if n <= _ALL_SIGNS:
        return np.array(list(itertools.product([1.0], *[[1.0, -1.0]] * (n - 1))))
    coins: Floats = np.random.default_rng(_SEED).integers(0, 2, (_PATTERNS, n)).astype(np.float64)
    return 2 * coins - 1


def _greatest(residuals: Floats, n: Ints, patterns: Floats) -> Floats:
    """Return, for each pattern of signs, the largest |t| over the pairs, after removal of all means.

    ``residuals[block, pair]``: NaN if a pair lacks the block; ``n``: the blocks of each pair.
    """
    filled = np.nan_to_num(residuals)
    mean = patterns @ filled / n
    # A square does not depend on the sign, so one sum of squares serves all patterns.
    variance = np.maximum((filled**2).sum(axis=0) - n * mean**2, 0.0) / (n - 1)
    # A pattern under which all blocks agree has no variance left: its t exceeds every other.
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) / np.sqrt(variance / n)
    greatest: Floats = np.where(np.isnan(t), 0.0, t).max(axis=1)
    return greatest


def _table(values: ArrayLike, names: Sequence[str]) -> Floats:
    """Return values by block and platform, without empty blocks."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2:
        raise NoAnswer(RefusalKind.TABLE_BY_BLOCK, dimensions=table.ndim)
    names_of(names, table.shape[1])
    if table.shape[1] < 2:
        raise NoAnswer(RefusalKind.ONE_PLATFORM)
    if np.isinf(table).any():
        raise NoAnswer(RefusalKind.INFINITE, infinite=int(np.isinf(table).sum()))
    refuse_extremes(table.ravel(), "the values")
    return table[~np.isnan(table).all(axis=1)]


def _no_answer(table: Floats, names: Sequence[str], i: int, j: int) -> RefusedAnswer | None:
    """Return the reason why a pair has no answer, or None."""
    difference = table[:, i] - table[:, j]
    difference = difference[~np.isnan(difference)]
    if difference.size < 2:
        return RefusedAnswer(RefusalKind.PAIR_TOO_FEW_BLOCKS, (names[i], names[j]), {"blocks": int(difference.size)})
    scale = np.nanmax(np.abs(table[:, [i, j]]))
    if not spread(difference) or np.ptp(difference) <= 1e-12 * scale:
        return RefusedAnswer(RefusalKind.PAIR_NO_NOISE, (names[i], names[j]), {"blocks": int(difference.size)})
    return None
