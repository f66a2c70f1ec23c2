"""A mean log ratio over blocks with its standard error, and how finely the metric's figures can be read."""

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
    """The error of a log ratio by the metric's steps: constant (``floor``), and random in one block (``sd``)."""

    step: float
    floor: float
    sd: float

    def half_width(self, level: float, n_blocks: int) -> float:
        """Half the width that an interval over so many blocks has at least, as a log."""
        at_random = float(special.stdtrit(n_blocks - 1, (1 + level) / 2)) * self.sd / math.sqrt(n_blocks)
        return max(self.floor, at_random)


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard error of a mean, and the degrees of freedom that it is known with."""

    error: float
    df: float


@dataclass(frozen=True, slots=True)
class Look:
    """A mean log ratio over blocks, by one estimate of a block's ratio.

    ``shown`` makes the intervals that are printed, ``judged`` those of verdicts and p values. They differ only where
    variances are moderated (`tare.estimates.moderated`) and there are few blocks.
    """

    point: float
    n_blocks: int
    shown: Spread
    judged: Spread
    rounding: Rounding | None = None

    @classmethod
    def over_blocks(cls, logs: Floats, rounding: Rounding | None = None) -> Look:
        """The mean of paired blocks (two or more), with Student's interval."""
        spread = Spread(float(logs.std(ddof=1)) / math.sqrt(logs.size), logs.size - 1.0)
        return cls(float(logs.mean()), logs.size, spread, spread, rounding)

    @classmethod
    def side_by_side(cls, logs: Floats, baseline: Floats, rounding: Rounding | None = None) -> Look:
        """The difference of two means of two values or more, with Welch's interval."""
        spread = welch(logs, baseline)
        size = min(logs.size, baseline.size)
        return cls(float(logs.mean() - baseline.mean()), size, spread, spread, rounding)

    def interval(self, level: float) -> Interval:
        """The interval that is printed, at least as wide as the metric's steps make it."""
        return self._around(self.shown, level)

    def judged_at(self, level: float) -> Interval:
        """The interval that a verdict rests on."""
        return self._around(self.judged, level)

    def moderated(self, shown: Spread, judged: Spread) -> Look:
        """The same mean with other spreads."""
        return replace(self, shown=shown, judged=judged)

    def _around(self, spread: Spread, level: float) -> Interval:
        least = self.rounding.half_width(level, self.n_blocks) if self.rounding is not None else 0.0
        half = max(least, half_width(spread.error, spread.df, level))
        return Interval(self.point, self.point - half, self.point + half)


def welch(values: Floats, others: Floats) -> Spread:
    """Standard error of a difference of two means, with Welch's degrees of freedom (1947). Two values each or more."""
    parts = [side.var(ddof=1) / side.size for side in (values, others)]
    below = sum(part**2 / (side.size - 1) for part, side in zip(parts, (values, others), strict=True))
    df = sum(parts) ** 2 / below if below > 0 else float(values.size + others.size - 2)
    return Spread(math.sqrt(sum(parts)), float(df))


@dataclass(frozen=True, slots=True)
class Looks:
    """Both estimates of a platform's log ratio. ``totals``: None where a block has one round, so that both are one."""

    typical: Look
    totals: Look | None = None

    def all(self) -> tuple[Look, ...]:
        """One look or two."""
        return (self.typical,) if self.totals is None else (self.typical, self.totals)


def rounding_of(step: float | None, arm: Floats, baseline: Floats, *, arms: int, rounds: int) -> Rounding | None:
    """A figure is known to half a step: on either side that stays, however many blocks show the same.

    ``arm`` and ``baseline``: their samples; ``arms``: of the baseline; ``rounds``: of a block. As an error at random it
    is uniform over the step, which has an SD of step / sqrt(12). None where no step is known.
    """
    if step is None:
        return None
    arm_step, base_step = step / float(np.nanmedian(arm)), step / float(np.nanmedian(baseline))
    sd = math.hypot(arm_step, base_step / math.sqrt(arms)) / math.sqrt(12 * rounds)
    return Rounding(step, math.log1p(arm_step / 2) + math.log1p(base_step / 2), sd)
