"""What an interval says against a margin that was stated before the data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tare.analysis.hidden import Hidden, highest_share
from tare.analysis.words import amount_range, magnitude_range, percent, signed_range, times_range
from tare.estimates.intervals import Amount, Interval
from tare.estimates.overhead import overhead, times_worse
from tare.model import Direction

NOTHING_HIDDEN = Hidden()
_CHANCE = ", but were there no difference, more than 1 of 100 campaigns would show as much"
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


#: No difference that counts, in all that was seen.
EQUAL = frozenset({Kind.EQUIVALENT, Kind.TYPICAL})


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


def certain(
    question: Question, typical: LogIntervals, totals: LogIntervals | None = None, unseen: Hidden = NOTHING_HIDDEN
) -> Side | None:
    """On which side of the baseline a platform lies for sure, by how much it may be: so says the 99 % interval.

    None where it holds zero, where the typical round and whole blocks lie on two sides, and where nothing may be said.
    """
    if unseen.no_verdict:
        return None
    looks = (typical,) if totals is None else (typical, totals)
    overs = [_with_losses(question, look.sure, unseen.failed, unseen.baseline_failed) for look in looks]
    worse, better = any(over.low > 0 for over in overs), any(over.high < 0 for over in overs)
    if worse == better:
        return None
    return Side.WORSE if worse else Side.BETTER


def _within(question: Question, logs: Interval, lost: float, baseline_lost: float) -> bool:
    over = _with_losses(question, logs, lost, baseline_lost)
    return -question.margin < over.low and over.high < question.margin


def _with_losses(question: Question, logs: Interval, lost: float, baseline_lost: float) -> Interval:
    """The overhead, were so much speed (a log) lost unseen by the platform or by the baseline."""
    up, down = (lost, baseline_lost) if question.direction is Direction.LOWER else (baseline_lost, lost)
    return overhead(Interval(logs.point, logs.low - down, logs.high + up), question.direction)


def judge(
    question: Question,
    typical: LogIntervals,
    totals: LogIntervals | None = None,
    unseen: Hidden = NOTHING_HIDDEN,
    amount: Amount | None = None,
) -> Verdict:
    """Decide, and say it in words with the interval; ``amount``: what is added, for metrics that tell it first."""
    kind = decide(question, typical, totals, unseen)
    surely = certain(question, typical, totals, unseen)
    over = overhead(typical.wide, question.direction)
    margin = percent(question.margin)
    if over.low <= 0 <= over.high:
        seen = _with_amount(question, signed_range(over), amount)
    else:
        seen = describe(question, typical.wide, amount)
    if kind in {Kind.SLOWER, Kind.FASTER}:
        which = Side.WORSE if kind is Kind.SLOWER else Side.BETTER
        if totals is None or side(question, typical, unseen) is kind:
            return Verdict(kind, seen, which)
        whole = describe(question, totals.wide)
        return Verdict(kind, f"{whole}, over whole blocks; a typical round: {signed_range(over)}", which)
    if kind is Kind.EQUIVALENT:
        return Verdict(kind, f"equivalent within {margin} ({seen}){_excluded(unseen)}", surely)
    if kind is Kind.TYPICAL:
        return Verdict(kind, f"equivalent within {margin} in all that was seen ({seen}){_excluded(unseen)}", surely)
    return Verdict(kind, f"inconclusive: {seen}{_why_not(question, typical, totals, unseen)}", surely)


def _excluded(unseen: Hidden) -> str:
    if not unseen.draws:
        return ""
    starts = f", {unseen.blocks} starts in more than {percent(highest_share(0, unseen.blocks))}"
    told = f"; {unseen.draws} samples exclude only slow modes in more than {percent(unseen.share)} of them"
    return told + starts if unseen.draws > unseen.blocks else told


def _why_not(question: Question, typical: LogIntervals, totals: LogIntervals | None, unseen: Hidden) -> str:
    """Why what was seen is no verdict."""
    over, margin = overhead(typical.wide, question.direction), percent(question.margin)
    if unseen.no_verdict:
        return ""
    if over.low > question.margin or over.high < -question.margin:
        if side(question, typical) is None:
            return _CHANCE
        return f"; whole blocks, or trials that failed, may lie on the other side of the {margin} margin"
    if _within(question, typical.narrow, 0.0, 0.0):
        if totals is not None and not _within(question, totals.narrow, 0.0, 0.0):
            return f" in a typical round, {signed_range(overhead(totals.wide, question.direction))} over whole blocks"
        return f"; trials that failed may lie beyond the {margin} margin"
    return _how_sure(over, margin, certain(question, typical, totals, unseen))


def _how_sure(over: Interval, margin: str, surely: Side | None) -> str:
    """What is open: the size of a difference, whether there is one, or where it lies."""
    there = over.low > 0 or over.high < 0
    if surely is not None:
        where = "" if there else " over whole blocks"
        return f": {surely} for sure{where}; whether by more than the {margin} margin is open"
    return _CHANCE if there else f"; known to ±{percent(over.half_width)}, the margin is {margin}"


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
    size, span = amount_range(amount.point, amount.ends, amount.unit)
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
