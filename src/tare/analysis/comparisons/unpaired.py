"""Tests of groups without common blocks: analysis of variance, and the pairs that differ (as in the studies)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tare import lazily
from tare.analysis.comparisons.many import holm
from tare.analysis.input_checks import level_of, samples, spread
from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.estimates.intervals import Interval

if TYPE_CHECKING:
    from scipy import special, stats
else:
    special, stats = lazily.LazyModule("scipy.special"), lazily.LazyModule("scipy.stats")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Overall:
    """Test that all groups have the same centre. ``df_within`` is None for the rank test (chi-squared)."""

    statistic: float
    df_between: float
    df_within: float | None
    p: float


@dataclass(frozen=True, slots=True)
class GroupPair:
    """``first`` minus ``second``; p and the interval, if any, hold for all pairs at once."""

    first: str
    second: str
    p: float
    difference: Interval | None = None


def one_way(groups: Mapping[str, ArrayLike]) -> Overall:
    """Run a one-way analysis of variance with equal variances (Fisher; Plauth 2017 reports it). Raises `NoAnswer`.

    Every group needs two values, and some group two that differ.
    """
    arrays = samples(groups, at_least=2)
    _some_noise(arrays)
    n, k = sum(map(len, arrays.values())), len(arrays)
    return _overall(float(stats.f_oneway(*arrays.values()).statistic), k - 1, n - k)


def welch(groups: Mapping[str, ArrayLike]) -> Overall:
    """Run an analysis of variance without equal variances (Welch, Biometrika 38, 1951). Raises `NoAnswer`.

    Every group needs two values that differ: its own variance is its weight.
    """
    arrays = list(samples(groups, at_least=2, varied=True).values())
    statistic = float(stats.f_oneway(*arrays, equal_var=False).statistic)
    weights = np.array([group.size / group.var(ddof=1) for group in arrays])
    terms = np.array([1 / (group.size - 1) for group in arrays]) * (1 - weights / weights.sum()) ** 2
    k = len(arrays)
    return _overall(statistic, k - 1, float((k * k - 1) / (3 * terms.sum())))


def kruskal_wallis(groups: Mapping[str, ArrayLike]) -> Overall:
    """Run an analysis of variance of ranks, corrected for ties (Kruskal and Wallis, 1952). Raises `NoAnswer`.

    Its p is that of chi-squared, which is accurate enough from five values a group.
    """
    arrays = samples(groups, at_least=2)
    _some_difference(arrays)
    result = stats.kruskal(*arrays.values())
    return Overall(float(result.statistic), len(arrays) - 1, None, float(result.pvalue))


def tukey(groups: Mapping[str, ArrayLike], *, level: float | None = 0.95) -> tuple[GroupPair, ...]:
    """Compare all pairs by Tukey's honest significant difference, in Kramer's form for unequal sizes.

    Sources: Tukey 1953, Kramer 1956. The variance is pooled: if the groups' variances differ, its p values are wrong
    (`games_howell`). Raises `NoAnswer` like `one_way`.
    """
    arrays = samples(groups, at_least=2)
    _some_noise(arrays)
    sizes = np.array([group.size for group in arrays.values()])
    df = float((sizes - 1).sum())
    pooled = sum(((group - group.mean()) ** 2).sum() for group in arrays.values()) / df
    first, second = np.triu_indices(len(arrays), 1)
    error = np.sqrt(pooled / 2 * (1 / sizes[first] + 1 / sizes[second]))
    return _studentised(arrays, error, np.array(df), level)


def games_howell(groups: Mapping[str, ArrayLike], *, level: float | None = 0.95) -> tuple[GroupPair, ...]:
    """Compare all pairs without equal variances or sizes (Games and Howell, J. Educ. Stat. 1, 1976).

    Each pair has Welch's standard error and degrees of freedom. Every group needs two values that differ, and the error
    rates are as stated from about six. Intervals take a tenth of a second a pair; without ``level`` there are none.
    Raises `NoAnswer`.
    """
    arrays = samples(groups, at_least=2, varied=True)
    sizes = np.array([group.size for group in arrays.values()])
    squared = np.array([group.var(ddof=1) / group.size for group in arrays.values()])  # Of the means' standard errors.
    first, second = np.triu_indices(len(arrays), 1)
    variance = squared[first] + squared[second]
    df = variance**2 / (squared[first] ** 2 / (sizes[first] - 1) + squared[second] ** 2 / (sizes[second] - 1))
    return _studentised(arrays, np.sqrt(variance / 2), df, level)


def rank_pairs(groups: Mapping[str, ArrayLike]) -> tuple[GroupPair, ...]:
    """Compare all pairs by the rank sum test after `kruskal_wallis`, with p adjusted by Holm. Raises `NoAnswer`.

    It uses the normal approximation, corrected for ties and continuity, and needs four values a group.
    """
    arrays = samples(groups, at_least=4)
    _some_difference(arrays)
    pairs = list(itertools.combinations(arrays, 2))
    p = [_rank_sum(arrays[first], arrays[second]) for first, second in pairs]
    return tuple(GroupPair(*pair, float(p_value)) for pair, p_value in zip(pairs, holm(p), strict=True))


def _overall(statistic: float, df_between: float, df_within: float) -> Overall:
    """Create a result with its p. For equal means, scipy returns a tiny negative value, and NaN as p."""
    statistic = max(0.0, statistic)
    return Overall(statistic, df_between, df_within, float(special.fdtrc(df_between, df_within, statistic)))


def _rank_sum(first: Floats, second: Floats) -> float:
    if np.ptp(np.concatenate((first, second))) == 0:
        return 1.0  # For two equal constants, every rank is tied.
    result = stats.mannwhitneyu(first, second, alternative="two-sided", method="asymptotic", use_continuity=True)
    return float(result.pvalue)


def _studentised(arrays: Mapping[str, Floats], error: Floats, df: Floats, level: float | None) -> tuple[GroupPair, ...]:
    """Compare differences over their errors with the studentised range; the error includes Tukey's root of two."""
    means = np.array([group.mean() for group in arrays.values()])
    first, second = np.triu_indices(means.size, 1)
    difference = means[first] - means[second]
    p = np.minimum(1.0, stats.studentized_range.sf(np.abs(difference) / error, means.size, df))
    names = list(arrays)
    pairs = [(names[i], names[j]) for i, j in zip(first, second, strict=True)]
    if level is None:
        return tuple(GroupPair(*pair, float(p_value)) for pair, p_value in zip(pairs, p, strict=True))
    half = stats.studentized_range.ppf(level_of(level), means.size, df) * error
    return tuple(
        GroupPair(*pair, float(p_value), Interval(float(d), float(d - h), float(d + h)))
        for pair, p_value, d, h in zip(pairs, p, difference, half, strict=True)
    )


def _some_noise(arrays: Mapping[str, Floats]) -> None:
    if not any(spread(group) for group in arrays.values()):
        raise NoAnswer(RefusalKind.GROUPS_CONSTANT)


def _some_difference(arrays: Mapping[str, Floats]) -> None:
    if not spread(np.concatenate(list(arrays.values()))):
        raise NoAnswer(RefusalKind.VALUES_ALIKE)
