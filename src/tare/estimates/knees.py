"""Rate over load: the knee, the point of saturation, and the best rate whose latency is below a limit.

A curve is an array ``[block, level]`` of figures, NaN for a missing figure, with the loads of its levels in rising
order. Each reading is taken off the mean over the blocks. Its interval is the range of the same reading for blocks
drawn with replacement (percentile bootstrap). Whole blocks are drawn, because all levels of a block share the machine's
state at that time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tare.estimates.intervals import Floats, Interval

#: Fewer blocks have no interval: two blocks allow only three different draws.
MIN_BLOCKS = 3
#: Fewer levels have no knee.
MIN_LEVELS = 3
#: A curve is saturated from the load that gives this share of its highest rate.
SATURATED = 0.95
#: A reading has an interval only if at least this share of the draws yields a figure.
SHOWN = 0.95
#: Function that reads a figure off a curve, from loads and rates.
Reading = Callable[[Floats, Floats], float]
_RESAMPLES = 999
_SEED = 20_261_123


def knee(loads: Floats, rates: Floats) -> float:
    """Return the load beyond which further load gains ever less, or NaN. Kneedle (Satopää and others 2011).

    Both axes are scaled to 0..1. The knee is the level that is furthest above the straight line from the first level to
    the level of the highest rate. Kneedle needs no model, and its result is a load that was measured. The Universal
    Scalability Law (Gunther 1993) is not used: it does not model a server whose client may be the limit, and its fit to
    three or five levels, most of them saturated, has no stable peak.
    """
    present = ~np.isnan(rates)
    loads, rates = loads[present], rates[present]
    top = int(rates.argmax()) + 1 if rates.size else 0
    if rates.size < MIN_LEVELS or top < MIN_LEVELS or rates[top - 1] <= rates[0]:
        return float(loads[top - 1]) if 0 < top < MIN_LEVELS <= rates.size else float("nan")
    rising, heights = loads[:top], rates[:top]
    above = (heights - heights[0]) / (heights[-1] - heights[0]) - (rising - rising[0]) / (rising[-1] - rising[0])
    return float(rising[int(above.argmax())]) if above.max() > 0 else float(rising[-1])


def saturation(loads: Floats, rates: Floats) -> float:
    """Return the least load that gives `SATURATED` of the highest rate; NaN without a rate."""
    if np.isnan(rates).all():
        return float("nan")
    return float(loads[np.nan_to_num(rates) >= SATURATED * np.nanmax(rates)][0])


def best_below(rates: Floats, latencies: Floats, limit: float) -> float:
    """Return the highest rate of a level whose latency is at most the limit; NaN if no level meets it."""
    keeps = rates[~np.isnan(rates) & (np.nan_to_num(latencies, nan=np.inf) <= limit)]
    return float(keeps.max()) if keeps.size else float("nan")


def over_blocks(figures: Floats, read: Callable[[Floats], float]) -> tuple[float, Interval | None]:
    """Return the reading of the mean over the blocks, and its 95 % interval; None below `MIN_BLOCKS`.

    ``figures[block, ...]``; ``read`` takes their mean over the blocks. There is no interval if more than one in twenty
    draws has no figure (NaN).
    """
    point = read(_mean(figures))
    n_blocks = figures.shape[0]
    if n_blocks < MIN_BLOCKS or np.isnan(point):
        return point, None
    draws = np.random.default_rng(_SEED).integers(n_blocks, size=(_RESAMPLES, n_blocks))
    values = np.array([read(_mean(figures[draw])) for draw in draws])
    shown = values[~np.isnan(values)]
    if shown.size < SHOWN * values.size:
        return point, None
    low, high = np.quantile(shown, [0.025, 0.975])
    return point, Interval(point, float(min(low, point)), float(max(high, point)))


def _mean(figures: Floats) -> Floats:
    """Return the mean over the first axis without missing figures; NaN if all are missing."""
    present = ~np.isnan(figures)
    counts = present.sum(axis=0)
    sums = np.where(present, figures, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
