"""Summary figures of the studies: overhead ratio, standardised scores, per cent of bare metal, row score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tare.analysis.input_checks import refuse_extremes, sample
from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.model import Direction

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PercentOfBaseline:
    """A platform's mean as a percentage of the baseline's, and the scatter of its own values, both in per cent."""

    percent: float
    rsd: float | None  # Standard deviation / mean of the platform's values; None for a single value.
    n: int


def overhead_ratio(measured: float, baseline: float, *, ignored_below: float = 0.0) -> float:
    """Return equation 1 of Li 2017 as printed: |Pm - Pb| / Pb, a fraction without a sign.

    A value below ``ignored_below`` is set to zero: the paper ignores less than 1 % as observational error. tare's own
    figure has the sign and an interval (`tare.estimates.overhead`). Raises `NoAnswer` for a baseline that is not
    positive.
    """
    if not (math.isfinite(baseline) and baseline > 0):
        raise NoAnswer(RefusalKind.BASELINE_NOT_POSITIVE, value=baseline)
    if not math.isfinite(measured):
        raise NoAnswer(RefusalKind.NOT_A_NUMBER, value=measured)
    ratio = abs(measured - baseline) / baseline
    return ratio if ratio >= ignored_below else 0.0


def trial_count_overhead(trials: int, baseline_trials: int) -> float:
    """Return the overhead in trials that fit into a given time: |n - nb| / nb, a fraction (Li 2017, section 3.3.4).

    Raises `NoAnswer` for a negative number of trials, and for zero of the baseline's.
    """
    if trials < 0 or baseline_trials < 1:
        raise NoAnswer(RefusalKind.TRIALS, trials=trials, baseline=baseline_trials)
    return overhead_ratio(trials, baseline_trials)


def standardised(figures: ArrayLike, direction: Direction) -> Floats:
    """Return one figure a platform as scores from 0 to 1, the best of them 1 (Li 2017, equations 2 and 3).

    Higher is better: x / max(x). Lower is better: (1/x) / max(1/x). Raises `NoAnswer` for figures that are not
    positive: their shares of the best mean nothing.
    """
    x = sample(figures, "figures", positive=True)
    good = x if direction is Direction.HIGHER else 1 / x
    scores: Floats = good / good.max()
    return scores


def percent_of_baseline(values: ArrayLike, baseline: ArrayLike) -> PercentOfBaseline:
    """Return the mean as a percentage of the baseline's, with the relative SD (Giallorenzo 2021, Fig. 5)."""
    x, base = sample(values, "the platform", positive=True), sample(baseline, "the baseline", positive=True)
    mean = float(x.mean())
    rsd = 100 * float(x.std(ddof=1)) / mean if x.size > 1 else None
    return PercentOfBaseline(100 * mean / float(base.mean()), rsd, x.size)


def row_scores(table: ArrayLike, directions: Sequence[Direction] | None = None) -> Floats:
    """Return one score for each row of ``table[row, column]``: the mean of its shares of the columns' maxima.

    Giallorenzo 2021, section Virtualization Solutions and Popularity, where greater is better in every column. A column
    whose ``directions`` say lower is inverted as in `standardised`. Raises `NoAnswer` for holes, for negative values,
    and for columns without a positive value.
    """
    rows = np.asarray(table, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise NoAnswer(RefusalKind.TABLE)
    if not np.isfinite(rows).all():
        raise NoAnswer(RefusalKind.HOLES, cells=int((~np.isfinite(rows)).sum()))
    refuse_extremes(rows.ravel(), "the table")
    ways = directions or [Direction.HIGHER] * rows.shape[1]
    if len(ways) != rows.shape[1]:
        raise NoAnswer(RefusalKind.DIRECTIONS, columns=rows.shape[1], directions=len(ways))
    columns = [_shares(column, way) for column, way in zip(rows.T, ways, strict=True)]
    scores: Floats = np.mean(columns, axis=0)
    return scores


def _shares(column: Floats, direction: Direction) -> Floats:
    if direction is Direction.LOWER:
        return standardised(column, direction)
    if (column < 0).any() or not column.any():
        raise NoAnswer(RefusalKind.COLUMN)
    shares: Floats = column / column.max()
    return shares
