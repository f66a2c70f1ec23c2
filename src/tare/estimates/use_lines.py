"""Numbers of instances that fit, from the use of the first ones: lines over blocks, and Fieller's interval.

In each block (one fill) a resource's use is a straight line of the number of instances: a part that comes once, and a
part with each. The host is full where the line meets what there is. That number is a ratio of two estimates; its
interval is the one of Fieller (1954, "Some problems in interval estimation", J. R. Stat. Soc. B 16): all numbers at
which the mean use over blocks may be what there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tare.estimates.intervals import MIN_BLOCKS, Floats, Interval, half_width

#: Of the interval of how many fit.
LEVEL = 0.90
#: Of Newton's method, at most: each one doubles the digits.
_STEPS = 50


@dataclass(frozen=True, slots=True)
class UseLine:
    """The use of a resource by the number of instances."""

    once: float
    each: float

    def at(self, count: float) -> float:
        """The use with so many."""
        return self.once + self.each * count


@dataclass(frozen=True, slots=True)
class UseCurve:
    """A line, and what comes on top of it: bytes and their slope by the number of instances."""

    line: UseLine
    beyond: Callable[[float], tuple[float, float]]

    def tangent(self, count: float) -> UseLine:
        """The straight line that has this curve's use and slope at so many."""
        more, slope = self.beyond(count)
        return UseLine(self.line.once + more - slope * count, self.line.each + slope)


@dataclass(frozen=True, slots=True)
class Fits:
    """The number of instances that a resource holds; infinite where more of them take no more of it."""

    count: float
    low: float | None  # of the interval; None below two blocks
    high: float | None
    n_blocks: int


def line(counts: Sequence[float], used: Sequence[float]) -> UseLine:
    """The straight line through a block's levels by least squares; of one level alone, through no use by none."""
    x, y = np.asarray(counts, dtype=float), np.asarray(used, dtype=float)
    if x.size < 2 or np.ptp(x) == 0:
        return UseLine(0.0, float(y.mean() / x.mean()) if x.size and x.mean() else 0.0)
    deviation = x - x.mean()
    each = float((deviation * (y - y.mean())).sum() / (deviation**2).sum())
    return UseLine(float(y.mean() - each * x.mean()), each)


def mean_line(lines: Sequence[UseLine]) -> UseLine:
    """The mean over blocks."""
    return UseLine(float(np.mean([line.once for line in lines])), float(np.mean([line.each for line in lines])))


def tangents(curves: Sequence[UseCurve], most: float) -> tuple[UseLine, ...]:
    """Return the curves' tangents where their mean meets ``most``: by Newton's method, as they bend upwards."""
    lines = tuple(curve.line for curve in curves)
    for _ in range(_STEPS):
        count = fits(lines, most).count
        if not math.isfinite(count):
            return lines
        following = tuple(curve.tangent(count) for curve in curves)
        if following == lines:
            break
        lines = following
    return lines


def fits(lines: Sequence[UseLine], most: float, level: float = LEVEL) -> Fits:
    """Return how many fit into ``most`` of a resource, from a line a block, with the interval of this level.

    No end is below 0. The upper one is infinite where the blocks do not tell each instance's part from nothing.
    """
    mean = mean_line(lines)
    count = max(0.0, (most - mean.once) / mean.each) if mean.each > 0 else math.inf
    if len(lines) < MIN_BLOCKS:
        return Fits(count, None, None, len(lines))
    low, high = _fieller(np.array([line.once for line in lines]), np.array([line.each for line in lines]), most, level)
    return Fits(count, min(low, count), max(high, count), len(lines))


def _fieller(once: Floats, each: Floats, most: float, level: float) -> tuple[float, float]:
    """The ends of the set of n with ``(most - mean once - n mean each)² <= t² var(once + n each) / blocks``."""
    blocks = once.size
    t = half_width(1.0, blocks - 1, level)
    spread = np.cov(np.stack([once, each]), ddof=1) * t * t / blocks
    room, slope = most - float(once.mean()), float(each.mean())
    if room <= 0:
        return 0.0, 0.0
    a = slope * slope - float(spread[1, 1])
    b = -(room * slope + float(spread[0, 1]))
    c = room * room - float(spread[0, 0])
    inner = b * b - a * c
    if inner < 0:  # the set is everything
        return 0.0, math.inf
    root = math.sqrt(inner)
    if a > 0:
        return max(0.0, (-b - root) / a), max(0.0, (-b + root) / a)
    if a == 0:
        return (max(0.0, -c / (2 * b)) if b else 0.0), math.inf
    ends = sorted(((-b - root) / a, (-b + root) / a))
    above = [end for end in ends if end > 0]  # the set lies outside of the two ends
    return (above[0] if above and c > 0 else 0.0), math.inf


def amount(values: Sequence[float], level: float = LEVEL) -> Interval | None:
    """The mean over blocks with Student's interval; None below two blocks."""
    array = np.asarray(values, dtype=float)
    if array.size < MIN_BLOCKS:
        return None
    mean = float(array.mean())
    half = half_width(float(array.std(ddof=1)) / math.sqrt(array.size), array.size - 1, level)
    return Interval(mean, mean - half, mean + half)
