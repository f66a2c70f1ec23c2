"""The warm-up of a server: the windows at the beginning of a run that are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from statistics import fmean, median, variance

from tare.errors import ParseError

#: Windows that must be left to be compared with each other.
MIN_WINDOWS = 4
#: Whole seconds of a load that tells what it did in each of them, but for the last, which may end before it is told.
MIN_TIME_S = MIN_WINDOWS + 1
#: Halves whose means differ by less than this share are alike, however little they vary.
ALIKE = 0.05
_STANDARD_ERRORS = 2.0
#: Median absolute deviations from what is typical, within which a window is as all others.
_DEVIATIONS = 3.0


def warm_from(rates: Sequence[float]) -> int | None:
    """Return the first window that counts, by the rates of all windows of a run; None where the run was never steady.

    Geweke's diagnostic (1992, "Evaluating the accuracy of sampling-based approaches to the calculation of posterior
    moments"), in halves: it is the first window from which the rates of the earlier half of what is left and those of
    the later half have means that differ by no more than two standard errors of that difference, or by no more than 5
    %. The noise is that of the later half, since a warm-up would count as noise of the earlier. At least half of the
    windows are left, and `MIN_WINDOWS`. A slow drift below the noise of the windows is not seen. Raises `ParseError`
    for fewer windows.
    """
    _require(len(rates))
    last = min(len(rates) // 2, len(rates) - MIN_WINDOWS)
    return next((first for first in range(last + 1) if _alike(rates[first:])), None)


def settled_from(latencies: Sequence[float]) -> int | None:
    """Return the first window that counts where the load is given and the latency answers; None where it never settled.

    It is the first, up to the later half's first, whose latency is as near to that of a typical later window (the later
    half's median) as those are, or within 5 %. From then on all count: `warm_from` would take a server that stands
    still in the middle for one that was cold until then, and the pause is what an open loop is for. Raises
    `ParseError` for fewer windows than `MIN_WINDOWS`.
    """
    _require(len(latencies))
    half = len(latencies) // 2
    typical = median(latencies[half:])
    spread = median(abs(latency - typical) for latency in latencies[half:])
    tolerance = max(ALIKE * typical, _DEVIATIONS * spread)
    return next((first for first in range(half + 1) if abs(latencies[first] - typical) <= tolerance), None)


#: Which window counts first, by a figure of each.
Criterion = Callable[[Sequence[float]], int | None]


def counted(figures: Sequence[float], by: Criterion = warm_from) -> int:
    """Return the first window whose figures count, by a criterion.

    The later half's first where the run was never steady.
    """
    first = by(figures)
    return len(figures) // 2 if first is None else first


def warm_up_s(figures: Sequence[float], ends_s: Sequence[float], by: Criterion = warm_from) -> float:
    """Return how long the warm-up took, in seconds; all of the run where it did not end.

    ``ends_s``: when each window ended, after that of what ran before the first of them: one more than ``figures``.
    """
    first = by(figures)
    return ends_s[-1 if first is None else first]


def _require(windows: int) -> None:
    if windows < MIN_WINDOWS:
        raise ParseError(f"{windows} windows do not show a warm-up: it takes {MIN_WINDOWS}")


def _alike(rates: Sequence[float]) -> bool:
    half = len(rates) // 2
    early, late = rates[:half], rates[half:]
    error = sqrt(variance(late) * (1 / len(early) + 1 / len(late)))
    return abs(fmean(early) - fmean(late)) <= max(ALIKE * fmean(rates), _STANDARD_ERRORS * error)
