"""What an interval says against a margin that was stated before the data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tare.analysis.hidden import Hidden, highest_share
from tare.analysis.intervals import Interval
from tare.analysis.overhead import overhead, times_worse
from tare.analysis.words import magnitude_range, percent, signed_range, times_range
from tare.model import Direction

#: The metric that every timed workload has (docs/method.md); it has words of its own.
CPU_COST = "cpu-cost"
NOTHING_HIDDEN = Hidden()
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


#: No difference that counts, in all that was seen.
EQUAL = frozenset({Kind.EQUIVALENT, Kind.TYPICAL})


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
    sure: Interval  # 99 %, and 99.5 % each where two are looked at


def decide(
    question: Question, typical: LogIntervals, totals: LogIntervals | None = None, unseen: Hidden = NOTHING_HIDDEN
) -> Kind:
    """The verdict of METHOD, part 3, point 5, on the typical round and on the ratio of totals (None: the same).

    Slower or faster: the 95 % interval of either lies wholly beyond the margin on that side, and its interval against
    false alarms excludes zero. The second binds where the noise is much wider than the margin: there the first alone
    would call one in twenty that do not differ. Equivalent: two one-sided tests at 5 % (Schuirmann 1987) of both, which
    is to say that both 90 % intervals lie wholly inside the margin, and still do when the worst that so many draws can
    have missed is added; where only the latter fails: typical. Failed trials count as runs at half speed. Else:
    inconclusive.
    """
    if unseen.no_verdict:
        return Kind.INCONCLUSIVE
    looks = (typical,) if totals is None else (typical, totals)
    sides = {kind for look in looks if (kind := side(question, look, unseen)) is not None}
    if sides:  # where the typical round is slower and the whole faster, neither is the answer
        return sides.pop() if len(sides) == 1 else Kind.INCONCLUSIVE
    if not all(_within(question, look.narrow, unseen.failed, unseen.baseline_failed) for look in looks):
        return Kind.INCONCLUSIVE
    if all(_within(question, look.narrow, unseen.possible, unseen.baseline_failed) for look in looks):
        return Kind.EQUIVALENT
    return Kind.TYPICAL


def side(question: Question, look: LogIntervals, unseen: Hidden = NOTHING_HIDDEN) -> Kind | None:
    """Slower or faster, or None where this look alone is not sure of it."""
    if not (look.sure.low > 0 or look.sure.high < 0):
        return None
    over = _with_losses(question, look.wide, unseen.failed, unseen.baseline_failed)
    if over.low > question.margin:
        return Kind.SLOWER
    return Kind.FASTER if over.high < -question.margin else None


def _within(question: Question, logs: Interval, lost: float, baseline_lost: float) -> bool:
    over = _with_losses(question, logs, lost, baseline_lost)
    return -question.margin < over.low and over.high < question.margin


def _with_losses(question: Question, logs: Interval, lost: float, baseline_lost: float) -> Interval:
    """The overhead, were so much speed (a log) lost unseen by the platform or by the baseline."""
    up, down = (lost, baseline_lost) if question.direction is Direction.LOWER else (baseline_lost, lost)
    return overhead(Interval(logs.point, logs.low - down, logs.high + up), question.direction)


def judge(
    question: Question, typical: LogIntervals, totals: LogIntervals | None = None, unseen: Hidden = NOTHING_HIDDEN
) -> Verdict:
    """Decide, and say it in words with the interval."""
    kind = decide(question, typical, totals, unseen)
    over = overhead(typical.wide, question.direction)
    margin = percent(question.margin)
    if kind in {Kind.SLOWER, Kind.FASTER}:
        if totals is None or side(question, typical, unseen) is kind:
            return Verdict(kind, describe(question, typical.wide))
        whole = describe(question, totals.wide)
        return Verdict(kind, f"{whole}, over whole blocks; a typical round: {signed_range(over)}")
    certain = over.low > 0 or over.high < 0  # a difference there is; the margin says whether it counts
    seen = describe(question, typical.wide) if certain else signed_range(over)
    if kind is Kind.EQUIVALENT:
        return Verdict(kind, f"equivalent within {margin} ({seen}){_excluded(unseen)}")
    if kind is Kind.TYPICAL:
        return Verdict(kind, f"equivalent within {margin} in all that was seen ({seen}){_excluded(unseen)}")
    return Verdict(kind, f"inconclusive: {_why_not(question, typical, totals, unseen, seen)}")


def _excluded(unseen: Hidden) -> str:
    if not unseen.draws:
        return ""
    starts = f", {unseen.blocks} starts in more than {percent(highest_share(0, unseen.blocks))}"
    told = f"; {unseen.draws} samples exclude only slow modes in more than {percent(unseen.share)} of them"
    return told + starts if unseen.draws > unseen.blocks else told


def _why_not(question: Question, typical: LogIntervals, totals: LogIntervals | None, unseen: Hidden, seen: str) -> str:
    """What was seen, and why it is no verdict."""
    over, margin = overhead(typical.wide, question.direction), percent(question.margin)
    why = f"; resolves ±{percent(over.half_width)}, the margin is {margin}"
    if unseen.no_verdict:
        why = ""
    elif over.low > question.margin or over.high < -question.margin:
        why = ", but chance does as much in more than 1 of 100"
        if side(question, typical) is not None:
            why = f"; whole blocks, or trials that failed, may lie on the other side of the {margin} margin"
    elif _within(question, typical.narrow, 0.0, 0.0):
        why = f"; trials that failed may lie beyond the {margin} margin"
        if totals is not None and not _within(question, totals.narrow, 0.0, 0.0):
            why = f" in a typical round, {signed_range(overhead(totals.wide, question.direction))} over whole blocks"
    elif over.low > 0 or over.high < 0:
        why = f": on both sides of the {margin} margin"
    return seen + why


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
