"""Signed overheads: positive is worse than the baseline, whichever direction is better for the metric."""

from __future__ import annotations

import math

from tare.estimates.intervals import Interval
from tare.model import Direction

#: exp() of a larger number overflows.
_LOG_LIMIT = 700.0


def ratio(logs: Interval) -> Interval:
    """Convert an interval of log ratios to ratios to the baseline."""
    point, low, high = (math.exp(max(-_LOG_LIMIT, min(_LOG_LIMIT, x))) for x in (logs.point, logs.low, logs.high))
    return Interval(point, low, high)


def overhead(logs: Interval, direction: Direction) -> Interval:
    """Return the performance overhead as a fraction: |Pm - Pb| / Pb (Li 2017, eq. 1), with the sign kept.

    Lower is better: Pm / Pb - 1. Higher is better: 1 - Pm / Pb, so that it never exceeds 1.
    """
    ratios = ratio(logs)
    if direction is Direction.LOWER:
        return Interval(ratios.point - 1, ratios.low - 1, ratios.high - 1)
    return Interval(1 - ratios.point, 1 - ratios.high, 1 - ratios.low)


def ratio_of(over: float, direction: Direction) -> float:
    """Return the ratio to the baseline for an overhead given as a fraction."""
    return 1 + over if direction is Direction.LOWER else 1 - over


def overhead_of(log: float, direction: Direction) -> float:
    """Return the overhead of one log ratio, as a fraction."""
    return overhead(Interval(log, log, log), direction).point


def times_worse(logs: Interval, direction: Direction) -> Interval:
    """Return how many times worse: the ratio if lower is better, its inverse if higher is better."""
    if direction is Direction.LOWER:
        return ratio(logs)
    return ratio(Interval(-logs.point, -logs.high, -logs.low))


def variability_overhead(deviation: float | None, baseline: float | None) -> float | None:
    """Return equation 1 of Li 2017 on standard deviations, as a fraction; zero if below the baseline's.

    None if a deviation is missing, or the baseline's is zero.
    """
    if deviation is None or not baseline:
        return None
    return max(0.0, (deviation - baseline) / baseline)
