"""Mean log ratio over blocks with its standard error, and the resolution of the metric's figures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tare import lazily
from tare.estimates.intervals import Floats, Interval, half_width

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")


@dataclass(frozen=True, slots=True)
class Rounding:
    """Error of a log ratio caused by the metric's steps: constant (``floor``), and random in one block (``sd``)."""

    step: float
    floor: float
    sd: float

    def half_width(self, level: float, n_blocks: int) -> float:
        """Return the minimum half-width of an interval over ``n_blocks`` blocks, as a log."""
        at_random = float(special.stdtrit(n_blocks - 1, (1 + level) / 2)) * self.sd / math.sqrt(n_blocks)
        return max(self.floor, at_random)


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard error of a mean, and its degrees of freedom."""

    error: float
    df: float


@dataclass(frozen=True, slots=True)
class Look:
    """A mean log ratio over blocks, by one of the two estimates of a block's ratio.

    ``shown`` is the spread for printed intervals, ``judged`` the spread for verdicts and p values. They differ only if
    variances are moderated (`tare.estimates.moderated`) and there are few blocks.
    """

    point: float
    n_blocks: int
    shown: Spread
    judged: Spread
    rounding: Rounding | None = None

    @classmethod
    def over_blocks(cls, logs: Floats, rounding: Rounding | None = None) -> Look:
        """Return the mean of paired blocks (two or more), with Student's interval."""
        spread = Spread(float(logs.std(ddof=1)) / math.sqrt(logs.size), logs.size - 1.0)
        return cls(float(logs.mean()), logs.size, spread, spread, rounding)

    @classmethod
    def side_by_side(cls, logs: Floats, baseline: Floats, rounding: Rounding | None = None) -> Look:
        """Return the difference of two means of two values or more, with Welch's interval."""
        spread = welch(logs, baseline)
        size = min(logs.size, baseline.size)
        return cls(float(logs.mean() - baseline.mean()), size, spread, spread, rounding)

    def interval(self, level: float) -> Interval:
        """Return the interval to print, at least as wide as the metric's steps require."""
        return self._around(self.shown, level)

    def judged_at(self, level: float) -> Interval:
        """Return the interval for a verdict."""
        return self._around(self.judged, level)

    def moderated(self, shown: Spread, judged: Spread) -> Look:
        """Return the same mean with other spreads."""
        return replace(self, shown=shown, judged=judged)

    def _around(self, spread: Spread, level: float) -> Interval:
        least = self.rounding.half_width(level, self.n_blocks) if self.rounding is not None else 0.0
        half = max(least, half_width(spread.error, spread.df, level))
        return Interval(self.point, self.point - half, self.point + half)


def welch(values: Floats, others: Floats) -> Spread:
    """Return the standard error of a difference of two means, with Welch's degrees of freedom (1947).

    Each side needs at least two values.
    """
    parts = [side.var(ddof=1) / side.size for side in (values, others)]
    below = sum(part**2 / (side.size - 1) for part, side in zip(parts, (values, others), strict=True))
    df = sum(parts) ** 2 / below if below > 0 else float(values.size + others.size - 2)
    return Spread(math.sqrt(sum(parts)), float(df))


@dataclass(frozen=True, slots=True)
class Looks:
    """Both estimates of a platform's log ratio. ``totals``: None if a block has one round, so that both are equal."""

    typical: Look
    totals: Look | None = None

    def all(self) -> tuple[Look, ...]:
        """One look or two."""
        return (self.typical,) if self.totals is None else (self.typical, self.totals)


def rounding_of(step: float | None, arm: Floats, baseline: Floats, *, arms: int, rounds: int) -> Rounding | None:
    """Return the error of a log ratio whose figures are known only to half a step, or None if no step is known.

    This limit stays on either side, however many blocks show the same figure. ``arm`` and ``baseline``: their samples;
    ``arms``: of the baseline; ``rounds``: of a block. The random error is uniform over the step, with an SD of step /
    sqrt(12).
    """
    if step is None:
        return None
    arm_step, base_step = step / float(np.nanmedian(arm)), step / float(np.nanmedian(baseline))
    sd = math.hypot(arm_step, base_step / math.sqrt(arms)) / math.sqrt(12 * rounds)
    return Rounding(step, math.log1p(arm_step / 2) + math.log1p(base_step / 2), sd)
