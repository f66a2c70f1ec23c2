"""Steadiness of a platform against the baseline: the ratio of two standard deviations with its interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tare import lazily
from tare.analysis.input_checks import level_of, sample
from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.estimates.intervals import Interval

if TYPE_CHECKING:
    from scipy import optimize, special
else:
    optimize, special = lazily.LazyModule("scipy.optimize"), lazily.LazyModule("scipy.special")

Floats = NDArray[np.float64]


def sd_ratio_bonett(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Interval:
    """Return SD of ``first`` over that of ``second`` without normality (Bonett, Appl. Psychol. Meas. 30, 2006).

    From log variances with the pooled kurtosis, for independent samples whose shapes are alike. An end of the interval
    is the ratio at which the samples, the second scaled by it, have the kurtosis that puts the end there. For pairs
    with a common drift it is conservative (tests/analysis/test_coverage.py). Raises `NoAnswer` below five values a
    sample.
    """
    level_of(level)
    x, y = _two(first, second, at_least=5)
    n = (x.size, y.size)
    z = -float(special.ndtri((1 - level) / 2))
    if min(n) <= z:
        raise NoAnswer(RefusalKind.LEVEL_NEEDS_MORE, level=level, more_than=z)
    variances = float(x.var(ddof=1)), float(y.var(ddof=1))
    squares = [variance * (size - 1) for variance, size in zip(variances, n, strict=True)]
    fourths = [float(((values - _trimmed(values)) ** 4).sum()) for values in (x, y)]
    ratio = variances[0] / variances[1]
    middle = math.log(ratio * (n[0] / (n[0] - z)) / (n[1] / (n[1] - z)))

    def miss(log_sd: float, side: int) -> float:
        """Return how far an end lies from where its own kurtosis puts it."""
        scale = math.exp(2 * log_sd)
        kurtosis = sum(n) * (fourths[0] + scale**2 * fourths[1]) / (squares[0] + scale * squares[1]) ** 2
        error = math.sqrt(sum((kurtosis - (size - 3) / size) / (size - 1) for size in n))
        return 2 * log_sd - middle - side * z * error

    # No scale makes the pooled kurtosis larger than the larger of the samples' own, which bounds the end's distance.
    worst = sum(n) * max(fourth / square**2 for fourth, square in zip(fourths, squares, strict=True))
    far = 1.0 + z * math.sqrt(sum(worst / (size - 1) for size in n))
    low, high = (optimize.brentq(miss, (middle - far) / 2, (middle + far) / 2, args=(side,)) for side in (-1, 1))
    return Interval(math.sqrt(ratio), math.exp(low), math.exp(high))


def variability(ratio: Interval) -> Interval:
    """Convert a ratio of standard deviations to variability overhead, a fraction (Li 2017); below 1 gives 0."""
    return Interval(*(max(0.0, sd_ratio - 1) for sd_ratio in (ratio.point, ratio.low, ratio.high)))


def _two(first: ArrayLike, second: ArrayLike, *, at_least: int) -> tuple[Floats, Floats]:
    x = sample(first, "first sample", at_least=at_least, varied=True)
    y = sample(second, "second sample", at_least=at_least, varied=True)
    return x, y


def _trimmed(values: Floats) -> float:
    """Return the trimmed mean at which Bonett centres fourth powers; `scipy.stats` would take long to load."""
    cut = int(values.size / (2 * math.sqrt(values.size - 4)))
    return float(np.sort(values)[cut : values.size - cut].mean())
