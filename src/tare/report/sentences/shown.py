"""The figure of a platform that is shown, taken from the report's model, in text for tables and for sentences."""

from __future__ import annotations

from dataclasses import dataclass

from tare.analysis.bounds import Bound
from tare.estimates.intervals import Interval
from tare.report.model import PlatformReport, ResultReport
from tare.report.sentences.numbers import DOTS, TO, amount_range, quantity
from tare.report.sentences.scale import bound_difference, difference, phrase
from tare.report.sentences.wording import Wording, wording


@dataclass(frozen=True, slots=True)
class ShownFigure:
    """A platform in a metric, with the words for a difference in it."""

    result: ResultReport
    platform: PlatformReport
    words: Wording

    @classmethod
    def of(cls, result: ResultReport, platform: PlatformReport, words: Wording | None = None) -> ShownFigure:
        """``words``: in place of the metric's own."""
        usual = wording(result.metric, result.unit, result.direction, result.family)
        return cls(result, platform, words or usual)

    @property
    def times(self) -> Interval | None:
        """The factor by which it is worse, with its ends at the point if there is no interval; None without a ratio."""
        effect = self.platform.effect
        if effect is None:
            return None
        low, high = (effect.times if end is None else end for end in (effect.low, effect.high))
        return Interval(effect.times, low, high)

    @property
    def level(self) -> float | None:
        """The level of the interval; None where there is none."""
        return None if self.platform.effect is None else self.platform.effect.level

    @property
    def unit(self) -> str | None:
        """The unit of the amount, where the metric says the amount first."""
        return self.platform.amount_unit if self.words.amount_first else None

    @property
    def bound(self) -> Bound | None:
        """The known bound where there is no verdict."""
        effect = self.platform.effect
        if effect is None or effect.bound is None:
            return None
        bound = effect.bound
        added = None if bound.amount_low is None or bound.amount_high is None else (bound.amount_low, bound.amount_high)
        return Bound(bound.kind, bound.low, bound.high, added)

    def value(self) -> str:
        """The value that the ratio makes of the baseline's, else the mean; "" where there is none."""
        value = self.platform.mean if self.platform.effect is None else self.platform.effect.value
        return "" if value is None else quantity(value, self.result.unit)

    def ratio(self) -> tuple[str, str]:
        """The difference as a ratio, and its interval, for a table; two empty texts where there is none."""
        if self.times is None:
            return "", ""
        return difference(self.times, self.result.direction, self.level)

    def amount(self, to: str = DOTS) -> tuple[str, str] | None:
        """Return what is added and its interval; None where there is no amount."""
        platform = self.platform
        if platform.amount is None or platform.amount_unit is None:
            return None
        ends = None
        if platform.amount_low is not None and platform.amount_high is not None:
            ends = platform.amount_low, platform.amount_high
        return amount_range(platform.amount, ends, platform.amount_unit, to)

    def first(self) -> tuple[str, str] | None:
        """The amount, of a metric that says it first."""
        return self.amount() if self.words.amount_first else None

    def in_words(self) -> tuple[str, str]:
        """The difference and its interval in words; two empty texts where there is none."""
        if self.words.amount_first and (added := self.amount(TO)) is not None:
            return added
        if self.times is None:
            return "", ""
        return phrase(self.times, self.result.direction, self.words, self.level)

    def bounded(self) -> str:
        """The bound for a table; "" where there is none."""
        return "" if self.bound is None else bound_difference(self.bound, self.result.direction, self.unit)
