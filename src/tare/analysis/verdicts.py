"""What an interval says against a margin that was stated before the data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What can be said, and the same in words."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a metric is asked: its name for the words, its direction, its margin as a fraction."""

    metric: str
    direction: Direction
    margin: float


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
    sure = logs.sure.low > 0 or logs.sure.high < 0
    if wide.low > question.margin and sure:
        return Kind.SLOWER
    if wide.high < -question.margin and sure:
        return Kind.FASTER
    if -question.margin < narrow.low and narrow.high < question.margin:
        return Kind.EQUIVALENT
    return Kind.INCONCLUSIVE


def judge(question: Question, logs: LogIntervals) -> Verdict:
    """Decide, and say it in words with the interval."""
    kind = decide(question, logs)
    over = overhead(logs.wide, question.direction)
    margin = percent(question.margin)
    if kind in {Kind.SLOWER, Kind.FASTER}:
        return Verdict(kind, describe(question, logs.wide))
    certain = over.low > 0 or over.high < 0  # a difference there is; the margin says whether it counts
    seen = describe(question, logs.wide) if certain else signed_range(over)
    if kind is Kind.EQUIVALENT:
        return Verdict(kind, f"equivalent within {margin} ({seen})")
    if over.low > question.margin or over.high < -question.margin:
        return Verdict(kind, f"inconclusive: {seen}, but chance does as much in more than 1 of 100")
    if certain:
        return Verdict(kind, f"inconclusive: {seen}: on both sides of the {margin} margin")
    resolved = percent(over.half_width)
    return Verdict(kind, f"inconclusive: {seen}; resolves ±{resolved}, the margin is {margin}")


def describe(question: Question, logs: Interval) -> str:
    """The size of a difference in words: "4.1 % slower, 3.6 to 4.7"; beyond twice: "3.3 times slower, 3.2 to 3.4"."""
    over, factor = overhead(logs, question.direction), times_worse(logs, question.direction)
    worse = over.point > 0
    times = factor if worse else Interval(1 / factor.point, 1 / factor.high, 1 / factor.low)
    if times.point > TIMES_FROM:
        size, span = times_range(times)
        if question.metric != CPU_COST:
            return f"{size} times {'slower' if worse else 'faster'}, {span}"
        return f"costs {size} times {'the' if worse else 'less'} CPU, {span}"
    size, span = magnitude_range(over)
    if question.metric != CPU_COST:
        return f"{size} {'slower' if worse else 'faster'}, {span}"
    return f"costs {size} {'more' if worse else 'less'} CPU, {span}"


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
