"""Intervals of a mean over blocks: Student's t, and the bootstrap (BCa) that checks it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tare import lazily

if TYPE_CHECKING:
    from scipy import special, stats
else:  # These take longer to load than all other code before the first block.
    special, stats = lazily.LazyModule("scipy.special"), lazily.LazyModule("scipy.stats")

#: Fewer blocks have no interval.
MIN_BLOCKS = 2
#: With fewer blocks, the bootstrap's own coverage is too low to check anything.
BOOTSTRAP_FROM = 10
#: Probability of finding the effect that is called the smallest.
POWER = 0.90
_RESAMPLES = 1_999
_SEED = 20_260_101

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A point and its interval, in the unit of the values."""

    point: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval's length."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Amount:
    """Difference of platform minus baseline, in ``unit``: positive means more, whichever direction is better."""

    unit: str
    point: float
    interval: Interval | None  # 95 %; None below two blocks, and if all values are equal.
    n_blocks: int

    @property
    def ends(self) -> tuple[float, float] | None:
        """The two ends of the interval, or None."""
        return None if self.interval is None else (self.interval.low, self.interval.high)


def t_interval(values: Floats, level: float) -> Interval:
    """Return the mean with Student's interval, mean ± t(n - 1) s / √n. Raises `ValueError` below two values."""
    if values.size < MIN_BLOCKS:
        raise ValueError("an interval needs at least two blocks")
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    half = half_width(error, values.size - 1, level)
    return Interval(mean, mean - half, mean + half)


def welch_interval(values: Floats, other_values: Floats, level: float) -> Interval:
    """Return the difference of two means with Welch's interval (Welch, 1947), which assumes no common variance.

    Raises `ValueError` below two values on either side.
    """
    if min(values.size, other_values.size) < 2:
        raise ValueError("an interval needs at least two values on either side")
    mean = float(values.mean() - other_values.mean())
    if np.ptp(values) == 0 and np.ptp(other_values) == 0:
        return Interval(mean, mean, mean)
    interval = stats.ttest_ind(values, other_values, equal_var=False).confidence_interval(level)
    return Interval(mean, float(interval.low), float(interval.high))


def half_width(error: float, df: float, level: float = 0.95) -> float:
    """Return half of Student's interval around an estimate with this standard error and degrees of freedom."""
    return float(special.stdtrit(df, (1 + level) / 2)) * error


def standard_error(interval: Interval, n_values: int, level: float = 0.95) -> float:
    """Return the standard error of the mean from a `t_interval` of ``n_values`` values (at least two)."""
    return interval.half_width / float(special.stdtrit(n_values - 1, (1 + level) / 2))


def smallest_effect(error: float, df: float, level: float = 0.95) -> float:
    """Return the smallest true difference that nine of ten campaigns find (`POWER`).

    Found means that an interval of this level excludes zero.

    ``(t((1 + level) / 2) + t(0.90)) error`` with ``df`` degrees of freedom, in the unit of the standard error. It
    exceeds the half-width: a true difference of one half-width is found only half of the time.
    """
    quantiles = special.stdtrit(df, [(1 + level) / 2, POWER])
    return float(quantiles.sum()) * error


def bca_interval(values: Floats, level: float) -> Interval | None:
    """Return the mean with the bias-corrected and accelerated bootstrap interval (Efron, 1987), from a fixed seed.

    None below `BOOTSTRAP_FROM` values, or if all values are equal.
    """
    if values.size < BOOTSTRAP_FROM or np.ptp(values) == 0:
        return None
    result = stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=level,
        n_resamples=_RESAMPLES,
        method="BCa",
        rng=np.random.default_rng(_SEED),
    )
    low, high = map(float, result.confidence_interval)
    return Interval(float(values.mean()), low, high) if math.isfinite(low) and math.isfinite(high) else None
