"""Stability of a set over repeats: the overlap of two repeats, and an estimate of the unseen things."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from tare import lazily
from tare.analysis.input_checks import level_of
from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.estimates.intervals import Interval

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = lazily.LazyModule("scipy.stats")


def jaccard(first: AbstractSet[str], second: AbstractSet[str]) -> float:
    """Return the share of common elements in the union of two sets, 0 to 1 (Jaccard 1901); 1 for two empty sets."""
    either = len(first | second)
    return len(first & second) / either if either else 1.0


def jaccards(repeats: Sequence[AbstractSet[str]]) -> list[float]:
    """Return `jaccard` of every two repeats. Raises `NoAnswer` below two."""
    if len(repeats) < 2:
        raise NoAnswer(RefusalKind.NOTHING_SHARED)
    return [jaccard(first, second) for first, second in itertools.combinations(repeats, 2)]


def chao2(repeats: Sequence[AbstractSet[str]], *, level: float = 0.95) -> Interval:
    """Estimate the number of things, including those that no repeat has seen: a lower bound, with its interval.

    Chao's estimator from incidence (Biometrics 43, 1987): the things seen in only one and in two repeats show how many
    were seen in none. It is a lower bound, sharp if rare things are all equally rare. With m repeats, Q1 things in just
    one and Q2 in just two: S + (m-1)/m Q1²/(2 Q2), or S + (m-1)/m Q1 (Q1-1)/2 if no thing is in just two. The interval
    assumes a normal logarithm of the unseen, and never goes below what was seen (Chao 1987; Colwell and others, J.
    Plant Ecology 5, 2012). If nothing unseen is estimated, its upper end is that of EstimateS 9.1, equation 14, with
    the binomial law in place of Poisson's, which is far off for few repeats. Repeats are assumed to be independent
    draws of one process: no number of repeats shows what the workload never does. Raises `NoAnswer` below two repeats,
    and if nothing was seen at all.
    """
    level_of(level)
    m = len(repeats)
    if m < 2:
        raise NoAnswer(RefusalKind.NOTHING_ESTIMATED)
    incidence = Counter(itertools.chain.from_iterable(repeats))
    if not incidence:
        raise NoAnswer(RefusalKind.NOTHING_SEEN)
    times = Counter(incidence.values())
    q1, q2, k = times[1], times[2], (m - 1) / m
    unseen = k * q1**2 / (2 * q2) if q2 else k * q1 * (q1 - 1) / 2
    observed = len(incidence)
    z = float(stats.norm.isf((1 - level) / 2))
    if unseen == 0:
        return _nothing_unseen(observed, incidence.total() / (m * observed), m, z)
    spread = math.exp(z * math.sqrt(math.log(1 + _variance(q1, q2, k, observed + unseen) / unseen**2)))
    return Interval(observed + unseen, observed + unseen / spread, observed + unseen * spread)


def _variance(q1: int, q2: int, k: float, estimate: float) -> float:
    """Return the variance of Chao2; ``k``: (m-1)/m."""
    if q2:
        r = q1 / q2
        return q2 * (k / 2 * r**2 + k**2 * r**3 + k**2 / 4 * r**4)
    return k * q1 * (q1 - 1) / 2 + k**2 * q1 * (2 * q1 - 1) ** 2 / 4 - k**2 * q1**4 / (4 * estimate)


def _nothing_unseen(observed: int, often: float, m: int, z: float) -> Interval:
    """Return the interval if all was seen at least twice: the misses if each thing were in each repeat as often."""
    missed = (1 - often) ** m
    return Interval(observed, observed, (observed + z * math.sqrt(observed * missed)) / (1 - missed))
