"""How stable a set is over repeats: what two of them share, and an estimate of what none of them has seen."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from tare import lazily
from tare.analysis.inputs import level_of
from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.estimates.intervals import Interval

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = lazily.LazyModule("scipy.stats")


def jaccard(first: AbstractSet[str], second: AbstractSet[str]) -> float:
    """What two sets share of what either has, 0 to 1 (Jaccard 1901); two empty sets are alike."""
    either = len(first | second)
    return len(first & second) / either if either else 1.0


def jaccards(repeats: Sequence[AbstractSet[str]]) -> list[float]:
    """`jaccard` of every two repeats. Raises `NoAnswer` below two."""
    if len(repeats) < 2:
        raise NoAnswer(RefusalKind.NOTHING_SHARED)
    return [jaccard(first, second) for first, second in itertools.combinations(repeats, 2)]


def chao2(repeats: Sequence[AbstractSet[str]], *, level: float = 0.95) -> Interval:
    """How many things there are, those included that no repeat has seen: at least so many, with its interval.

    Chao's estimator from incidence (Biometrics 43, 1987): what was seen in one repeat only and in two shows what was
    seen in none. It is a lower bound, sharp where rare things are all equally rare. With m repeats, Q1 things in just
    one and Q2 in just two: S + (m-1)/m Q1²/(2 Q2), or S + (m-1)/m Q1 (Q1-1)/2 where no thing is in just two. The
    interval takes the logarithm of the unseen as normal and never goes below what was seen (Chao 1987; Colwell and
    others, J. Plant Ecology 5, 2012). Where nothing unseen is estimated its upper end is that of EstimateS 9.1,
    equation 14, with the binomial law for Poisson's, which is far off for few repeats. Repeats are taken for
    independent draws of one process: what the workload never does, no number of repeats would show. Raises `NoAnswer`
    below two repeats, and where nothing was seen at all.
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
    """The variance of Chao2; ``k``: (m-1)/m."""
    if q2:
        r = q1 / q2
        return q2 * (k / 2 * r**2 + k**2 * r**3 + k**2 / 4 * r**4)
    return k * q1 * (q1 - 1) / 2 + k**2 * q1 * (2 * q1 - 1) ** 2 / 4 - k**2 * q1**4 / (4 * estimate)


def _nothing_unseen(observed: int, often: float, m: int, z: float) -> Interval:
    """All was seen twice at least: what would be missed if each thing were in each repeat as often as they are."""
    missed = (1 - often) ** m
    return Interval(observed, observed, (observed + z * math.sqrt(observed * missed)) / (1 - missed))
