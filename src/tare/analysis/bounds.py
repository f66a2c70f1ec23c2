"""What is known where there is no verdict: how much worse a platform is at most, or at least."""

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

#: Within this, either way, both ends are worth saying; a bound beyond the second says nothing.
_NEAR, _FAR = math.log(1.25), math.log(2.0)


class BoundKind(StrEnum):
    """Which ends of a bound are known."""

    BETWEEN = "between"
    AT_MOST = "at-most"
    AT_LEAST = "at-least"


@dataclass(frozen=True, slots=True)
class Bound:
    """How many times worse a platform is, each end at a one-sided level of 95 %; below 1 it is better.

    ``kind``: which of the ends is worth saying; ``added``: what these add to the baseline, in the amount's unit.
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
    """The bound of what was seen: the worse ends of both looks' 90 % intervals. None where it says nothing.

    Both ends where they are near, or where the platform is worse or better and known within twice; else how much worse
    it is at most, if that is not above twice, or at least, if that is beyond the margin. Failed trials count as runs at
    half speed.
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
    """A bound that holds for each of several figures: from the lowest end to the highest.

    Each end still holds for the worst of the figures at 95 %, since it is at least as far out as that figure's own.
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
    """The margin as a logarithm of how many times worse."""
    at_margin = math.log(ratio_of(question.margin, question.direction))
    return at_margin if question.direction is Direction.LOWER else -at_margin
