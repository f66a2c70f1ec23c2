"""Change points of a series of figures: a trajectory within a campaign, or a metric's history over many.

E-divisive (Matteson and James, J. Am. Stat. Assoc. 109, 2014), which MongoDB and Hunter (Fleming and others, ICPE 2023)
use for performance histories; here with its permutation test. Hunter's t test is faster, but it tests exactly the place
where the two sides were found to differ most, so its p is too small. Hunter chose it because permutations gave another
answer each time; a fixed seed solves that. docs/decisions.md compares its successor, Apache Otava. PELT (the package
ruptures) needs a penalty, and gives no error rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tare.analysis.input_checks import sample, spread
from tare.analysis.refusals import NoAnswer, RefusalKind

#: A change needs this many values on either side, because fewer may be one or two wild values.
MIN_STRETCH = 5
#: All pairs of values are in memory at once: 8 MB at this length.
MAX_VALUES = 1_000
PERMUTATIONS = 199
_SEED = 20_260_103

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """``at`` is the index of the first value after the change; the medians are those of the stretches around it."""

    at: int
    p: float
    before: float
    after: float


def change_points(
    values: ArrayLike, *, alpha: float = 0.01, shortest: int = MIN_STRETCH, permutations: int = PERMUTATIONS
) -> list[ChangePoint]:
    """Split the series where its two sides differ most, unless chance explains it; return the changes in order.

    A series of independent values without a change is split with a probability of at most ``alpha``. Values that depend
    on their predecessor (a drift, a daily rhythm) do change, and are split. Changes of spread count too. p is resolved
    down to 1 / (permutations + 1), so alpha is at least that. Raises `NoAnswer` for missing values, for fewer than
    twice ``shortest``, and above `MAX_VALUES`. Constant values have no change.
    """
    if shortest < 2:
        raise NoAnswer(RefusalKind.SHORTEST, shortest=shortest)
    if not 1 / (permutations + 1) <= alpha < 1:
        raise NoAnswer(RefusalKind.ALPHA, least=1 / (permutations + 1), alpha=alpha)
    series = sample(values, "the series", at_least=2 * shortest)
    if series.size > MAX_VALUES:
        raise NoAnswer(RefusalKind.TOO_MANY, values=series.size, most=MAX_VALUES)
    p_by_place: dict[int, float] = {}
    stretches = [(0, series.size)]
    while stretches:
        start, end = stretches.pop()
        rng = np.random.default_rng((_SEED, start, end))
        at, p = _split(series[start:end], shortest, rng, alpha, permutations)
        if p <= alpha:
            p_by_place[start + at] = p
            stretches += [(start, start + at), (start + at, end)]
    edges = [0, *sorted(p_by_place), series.size]
    return [
        ChangePoint(at, p_by_place[at], float(np.median(series[before:at])), float(np.median(series[at:after])))
        for before, at, after in zip(edges, edges[1:], edges[2:], strict=False)
    ]


def _split(
    series: Floats, shortest: int, rng: np.random.Generator, alpha: float, permutations: int
) -> tuple[int, float]:
    """Return the place where the sides differ most, and the share of shuffles that differ as much somewhere.

    The share is 1 as soon as it is known to be above ``alpha``, which saves nearly all of the work if nothing changed.
    """
    if series.size < 2 * shortest or not spread(series):
        return 0, 1.0
    distances = np.abs(series[:, None] - series)
    divergence = _divergence(distances, shortest)
    greatest = float(divergence.max())
    as_much = 0
    for _ in range(permutations):
        order = rng.permutation(series.size)
        as_much += _divergence(distances[np.ix_(order, order)], shortest).max() >= greatest * (1 - 1e-9)
        if 1 + as_much > alpha * (1 + permutations):
            return 0, 1.0
    return shortest + int(divergence.argmax()), (1 + as_much) / (1 + permutations)


def _divergence(distances: Floats, shortest: int) -> Floats:
    """Return the scaled energy distance of the sides for every allowed split (Matteson and James; exponent 1)."""
    n = distances.shape[0]
    left = np.arange(shortest, n - shortest + 1)
    right = n - left
    upper = np.triu(distances)
    within_left = np.concatenate(([0.0], np.cumsum(upper.sum(axis=0))))[left]
    within_right = np.concatenate((np.cumsum(upper.sum(axis=1)[::-1])[::-1], [0.0]))[left]
    across = upper.sum() - within_left - within_right
    energy = 2 * across / (left * right)
    energy -= 2 * within_left / (left * (left - 1)) + 2 * within_right / (right * (right - 1))
    scaled: Floats = left * right / n * energy
    return scaled
