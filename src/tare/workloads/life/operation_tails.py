"""The tail of an operation's times within a trial: quantiles, where there are enough of them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from tare.model import Direction, Metric

#: By metric: the quantile in percent. So many times are needed that one is expected beyond it.
_QUANTILES: Mapping[str, int] = {"p95": 95, "p99": 99}
TAILS = tuple(
    Metric(name, "ms", Direction.LOWER, f"the same: {percent} of 100 were faster")
    for name, percent in _QUANTILES.items()
)


def tails(times: Sequence[float]) -> tuple[dict[str, float], dict[str, str]]:
    """Return the quantiles of a trial's times (Hyndman and Fan's type 6), in their unit, and why those that lack do."""
    figures, unseen = {}, {}
    for name, percent in _QUANTILES.items():
        lacking = 100 // (100 - percent) - len(times)
        if lacking > 0:
            unseen[name] = f"needs {lacking} more"
        else:
            figures[name] = statistics.quantiles(times, n=100)[percent - 1]
    return figures, unseen
