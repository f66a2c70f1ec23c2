"""Bounds in place of a verdict: how much worse a platform is at most, or at least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tare.analysis.hidden import Hidden
from tare.analysis.rule import NARROW
from tare.analysis.verdicts import Question
from tare.estimates.intervals import Interval
from tare.estimates.looks import Looks
from tare.estimates.overhead import ratio, ratio_of
from tare.model import Direction

#: Both ends are reported within the first limit, either way. A bound beyond the second says nothing.
_NEAR, _FAR = math.log(1.25), math.log(2.0)


class BoundKind(StrEnum):
    """The known ends of a bound."""

    BETWEEN = "between"
    AT_MOST = "at-most"
    AT_LEAST = "at-least"


@dataclass(frozen=True, slots=True)
class Bound:
    """Factor by which a platform is worse, each end at a one-sided level of 95 %; below 1 it is better.

    ``kind``: the ends that are worth reporting; ``added``: what they add to the baseline, in the amount's unit.
    """

    kind: BoundKind
    low: float
    high: float
    added: tuple[float, float] | None = None

    @property
    def half_width(self) -> float:
        """Half of the bound, as a logarithm."""
        return math.log(self.high / self.low) / 2


def bound(question: Question, looks: Looks, unseen: Hidden) -> Bound | None:
    """Return the bound from the worse ends of both looks' 90 % intervals, or None if it says nothing.

    Both ends are reported if they are near, or if the platform is worse or better and known within a factor of two.
    Otherwise the upper end is reported if it is not above 2, or the lower end if it is beyond the margin. Failed trials
    count as runs at half speed.
    """
    if unseen.no_verdict:
        return None
    ends = [(look.interval(NARROW).low, look.interval(NARROW).high) for look in looks.all()]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    if question.direction is Direction.HIGHER:
        low, high = -high, -low
    low, high = low - unseen.baseline_failed, high + unseen.failed
    kind = _kind(low, high, margin_log(question))
    if kind is None:
        return None
    times = ratio(Interval(0.0, low, high))
    return Bound(kind, times.low, times.high)


def merged(bounds: Sequence[Bound]) -> Bound:
    """Return a bound that holds for each of several figures: from the lowest end to the highest.

    Each end still holds at 95 % for the worst of the figures, because it is at least as far out as that figure's own.
    """
    kinds = {each.kind for each in bounds}
    low, high = min(each.low for each in bounds), max(each.high for each in bounds)
    added = None
    if all(each.added is not None for each in bounds):
        ends = [each.added for each in bounds if each.added is not None]
        added = min(low for low, _ in ends), max(high for _, high in ends)
    if BoundKind.AT_LEAST in kinds:
        return max((each for each in bounds if each.kind is BoundKind.AT_LEAST), key=lambda each: each.low)
    return Bound(kinds.pop() if len(kinds) == 1 else BoundKind.AT_MOST, low, high, added)


def _kind(low: float, high: float, margin: float) -> BoundKind | None:
    near = low >= -_NEAR and high <= _NEAR
    one_side = (low > 0 and high <= _FAR) or (high < 0 and low >= -_FAR)
    if near or one_side:
        return BoundKind.BETWEEN
    if high <= _FAR:
        return BoundKind.AT_MOST
    return BoundKind.AT_LEAST if low > margin else None


def margin_log(question: Question) -> float:
    """Return the margin as a logarithm of how many times worse."""
    at_margin = math.log(ratio_of(question.margin, question.direction))
    return at_margin if question.direction is Direction.LOWER else -at_margin
