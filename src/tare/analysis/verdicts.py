"""What an interval says against a margin that was stated before the data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tare.analysis.amounts import Amount
from tare.analysis.intervals import Interval
from tare.analysis.overhead import overhead, times_worse
from tare.analysis.words import magnitude_range, percent, signed_range, times_range
from tare.model import Direction

#: The metric that every timed workload has (docs/method.md); it has words of its own.
CPU_COST = "cpu-cost"
#: Beyond this factor a percentage is hard to read.
TIMES_FROM = 2.0


class Kind(StrEnum):
    """What can be said of a platform's metric."""

    BASELINE = "baseline"
    SLOWER = "slower"
    FASTER = "faster"
    EQUIVALENT = "equivalent"
    TYPICAL = "typical"  # equivalent in all that was seen; a rare slow mode that was not could break the margin
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    NO_DATA = "no-data"

    @property
    def word(self) -> str:
        """The same for a reader: memory is not slower, it is worse."""
        return {Kind.SLOWER: "worse", Kind.FASTER: "better"}.get(self, self.value)


class Side(StrEnum):
    """On which side of the baseline a platform lies for sure."""

    WORSE = "worse"
    BETTER = "better"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What can be said, and the same in words.

    ``certain``: that there is a difference, and to which side; by how much is another question. None: it is not known.
    """

    kind: Kind
    text: str
    certain: Side | None = None


@dataclass(frozen=True, slots=True)
class Wording:
    """Phrases with a place for the size of a difference: one for percentages, one for factors, each for both sides."""

    worse: str
    better: str
    times_worse: str
    times_better: str
    #: The amount that is added is said before the ratio: a ratio to a baseline of next to nothing says nothing.
    amount_first: bool = False


SPEED = Wording("{} slower", "{} faster", "{} times slower", "{} times faster")


@dataclass(frozen=True, slots=True)
class Question:
    """What a metric is asked: its name, its direction, its margin as a fraction, and the words for a difference."""

    metric: str
    direction: Direction
    margin: float
    words: Wording = SPEED


@dataclass(frozen=True, slots=True)
class LogIntervals:
    """Log ratio to the baseline: the interval to report, that for equivalence, and that against false alarms."""

    wide: Interval  # 95 %
    narrow: Interval  # 90 %
    sure: Interval  # 99 %


def decide(question: Question, logs: LogIntervals) -> Kind:
    """The verdict of METHOD, part 3, point 5.

    Slower or faster: the 95 % interval lies wholly beyond the margin on that side, and the 99 % interval excludes zero.
    The second binds where the noise is much wider than the margin: there the first alone would call one in twenty
    that do not differ. Equivalent: two one-sided tests at 5 % (Schuirmann 1987), which is to say that the 90 % interval
    lies wholly inside the margin. Else: inconclusive.
    """
    wide, narrow = overhead(logs.wide, question.direction), overhead(logs.narrow, question.direction)
    side = certain(question, logs)
    if wide.low > question.margin and side is Side.WORSE:
        return Kind.SLOWER
    if wide.high < -question.margin and side is Side.BETTER:
        return Kind.FASTER
    if -question.margin < narrow.low and narrow.high < question.margin:
        return Kind.EQUIVALENT
    return Kind.INCONCLUSIVE


def certain(question: Question, logs: LogIntervals) -> Side | None:
    """The side of the baseline on which the 99 % interval lies; None where it holds zero."""
    sure = overhead(logs.sure, question.direction)
    return Side.WORSE if sure.low > 0 else Side.BETTER if sure.high < 0 else None


def judge(question: Question, logs: LogIntervals, amount: Amount | None = None) -> Verdict:
    """Decide, and say it in words with the interval; ``amount``: what is added, for metrics that tell it first."""
    kind, side = decide(question, logs), certain(question, logs)
    over = overhead(logs.wide, question.direction)
    margin = percent(question.margin)
    if over.low <= 0 <= over.high:
        seen = _with_amount(question, signed_range(over), amount)
    else:
        seen = describe(question, logs.wide, amount)
    if kind in {Kind.SLOWER, Kind.FASTER}:
        return Verdict(kind, seen, side)
    if kind is Kind.EQUIVALENT:
        return Verdict(kind, f"equivalent within {margin} ({seen})", side)
    if side is not None:
        open_size = f"{side} for sure; whether by more than the {margin} margin is open"
        return Verdict(kind, f"inconclusive: {seen}: {open_size}", side)
    if over.low > 0 or over.high < 0:
        chance = "were there no difference, more than 1 of 100 campaigns would show as much"
        return Verdict(kind, f"inconclusive: {seen}, but {chance}")
    return Verdict(kind, f"inconclusive: {seen}; known to ±{percent(over.half_width)}, the margin is {margin}")


def too_few(question: Question, n_blocks: int, log: float | None, amount: Amount | None = None) -> Verdict:
    """What fewer blocks than an interval needs say: of one, with its log ratio, what was measured."""
    if log is None:
        return Verdict(Kind.INCONCLUSIVE, f"inconclusive: {n_blocks} blocks with the baseline, at least 2 are needed")
    seen, _, _ = describe(question, Interval(log, log, log), amount).rpartition(", ")
    return Verdict(Kind.INCONCLUSIVE, f"inconclusive: {seen} in 1 block, and an interval needs 2")


def describe(question: Question, logs: Interval, amount: Amount | None = None) -> str:
    """The size of a difference in words: "4.1 % slower, 3.6 to 4.7"; beyond twice: "3.3 times slower, 3.2 to 3.4".

    With the amount first where the metric wants that: "+132 ms (128 to 137): 45 times slower, 43 to 47".
    """
    over, factor = overhead(logs, question.direction), times_worse(logs, question.direction)
    worse = over.point > 0
    times = factor if worse else Interval(1 / factor.point, 1 / factor.high, 1 / factor.low)
    words = question.words
    if times.point > TIMES_FROM:
        size, span = times_range(times)
        phrase = words.times_worse if worse else words.times_better
    else:
        size, span = magnitude_range(over)
        phrase = words.worse if worse else words.better
    return _with_amount(question, f"{phrase.format(size)}, {span}", amount)


def _with_amount(question: Question, seen: str, amount: Amount | None) -> str:
    if amount is None or not question.words.amount_first:
        return seen
    size, span = amount.in_words()
    return f"{size} ({span}): {seen}" if span else f"{size}: {seen}"


def gate(question: Question, baseline: LogIntervals | None) -> str | None:
    """Why nothing can be said of a metric in this run, or None (METHOD, part 3, point 8).

    The two baseline arms run the same bits in the same way. When the interval of their difference excludes zero, and
    lies wholly beyond half of the margin, the instrument saw a difference that is not there.
    """
    if baseline is None:
        return None
    over = overhead(baseline.wide, question.direction)
    if -question.margin / 2 <= over.high and over.low <= question.margin / 2:
        return None
    size, span = magnitude_range(over)
    return f"the two baseline arms differ by {size} ({span}), more than half of the {percent(question.margin)} margin"
