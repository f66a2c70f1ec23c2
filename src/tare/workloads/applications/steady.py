"""When a server was warm: the windows at the beginning of a run that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, variance

from tare.errors import ParseError

#: Windows that must be left to be compared with each other.
LEAST_WINDOWS = 4
#: Halves whose means differ by less than this share are alike, however little they vary.
ALIKE = 0.05
_STANDARD_ERRORS = 2.0


def warm_from(rates: Sequence[float]) -> int | None:
    """The first window that counts, by the rates of all windows of a run; None where the run was never steady.

    Geweke's diagnostic (1992, "Evaluating the accuracy of sampling-based approaches to the calculation of posterior
    moments"), in halves: it is the first window from which the rates of the earlier half of what is left and those of
    the later half have means that differ by no more than two standard errors of that difference, or by no more than 5
    %. The noise is that of the later half, since a warm-up would count as noise of the earlier. At least half of the
    windows are left, and `LEAST_WINDOWS`. A slow drift below the noise of the windows is not seen. Raises `ParseError`
    for fewer windows.
    """
    if len(rates) < LEAST_WINDOWS:
        raise ParseError(f"{len(rates)} windows do not show a warm-up: it takes {LEAST_WINDOWS}")
    last = min(len(rates) // 2, len(rates) - LEAST_WINDOWS)
    return next((first for first in range(last + 1) if _alike(rates[first:])), None)


def counted(rates: Sequence[float]) -> int:
    """The same, and the first of the later half where the run was never steady."""
    first = warm_from(rates)
    return len(rates) // 2 if first is None else first


def warm_up_s(rates: Sequence[float], ends_s: Sequence[float]) -> float:
    """How long the warm-up took, in seconds; all of the run where it did not end.

    ``ends_s``: when each window ended, after that of what ran before the first of them: one more than ``rates``.
    """
    first = warm_from(rates)
    return ends_s[-1 if first is None else first]


def _alike(rates: Sequence[float]) -> bool:
    half = len(rates) // 2
    early, late = rates[:half], rates[half:]
    error = sqrt(variance(late) * (1 / len(early) + 1 / len(late)))
    return abs(fmean(early) - fmean(late)) <= max(ALIKE * fmean(rates), _STANDARD_ERRORS * error)
