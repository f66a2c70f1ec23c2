"""Verdicts: an interval judged against a margin that was set before the data, as codes and figures.

The sentences are the report's (`tare.report.sentences`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tare.analysis.hidden import Hidden
from tare.estimates.intervals import Amount, Interval
from tare.estimates.overhead import overhead
from tare.model import Direction

NOTHING_HIDDEN = Hidden()


class Kind(StrEnum):
    """The verdicts on a platform's metric."""

    BASELINE = "baseline"
    SLOWER = "slower"
    FASTER = "faster"
    EQUIVALENT = "equivalent"
    TYPICAL = "typical"  # equivalent in all that was seen; a rare slow mode that was not could break the margin
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    NO_DATA = "no-data"


class Reason(StrEnum):
    """What a verdict rests on, or what keeps it from being another. In brackets: its `Verdict.numbers`."""

    BASELINE = "baseline"
    # slower and faster: which look shows it; equivalent and typical: both looks
    TYPICAL_ROUND = "typical-round"
    WHOLE_BLOCKS = "whole-blocks"
    WITHIN_MARGIN = "within-margin"
    # inconclusive
    TOO_FEW_BLOCKS = "too-few-blocks"  # (blocks)
    ONE_BLOCK = "one-block"
    UNRELIABLE = "unreliable"  # too many trials failed, or nothing varies in too few blocks
    CHANCE = "chance"  # were there no difference, more than 1 of 100 campaigns would show as much
    LOOKS_DIFFER = "looks-differ"  # whole blocks, or failed trials, may lie on the other side of the margin
    BLOCKS_WIDER = "blocks-wider"  # within the margin in a typical round, over whole blocks not
    FAILED_BEYOND = "failed-beyond"  # failed trials may lie beyond the margin
    SIZE_OPEN = "size-open"  # `certain` of the side, and open whether by more than the margin
    WIDE_INTERVAL = "wide-interval"
    WIDE_FLOOR = "wide-floor"  # (half_width: of the noise floor)
    # invalid
    BASELINES_DIFFER = "baselines-differ"  # (point, low, high: the overhead of one baseline arm against the other)
    BASELINES_DRIFT = "baselines-drift"  # (correlation, size), as of the next, of one baseline arm against the other
    DRIFT = "drift"  # (correlation: with the block; size: how far from the first to the last, a log)
    # no data
    NO_DATA = "no-data"
    UNSUPPORTED = "unsupported"
    ALL_FAILED = "all-failed"  # (failed)
    NOT_SHOWN = "not-shown"  # no good trial could show it (ok)
    NO_BASELINE = "no-baseline"
    UNFIT = "unfit"  # samples without a ratio (unfit, samples)
    UNFIT_BASELINE = "unfit-baseline"  # the same of the baseline's
    NOT_ALIKE = "not-alike"  # it had what makes the comparison unfair: `Verdict.unlike`
    ALL_MARKED = "all-marked"  # without the contaminated trials no block is left


#: A figure that could be had and is refused, since it would mislead.
REFUSED = frozenset({Reason.UNFIT, Reason.UNFIT_BASELINE, Reason.NOT_ALIKE})


class Side(StrEnum):
    """On which side of the baseline a platform lies, by its 99 % interval."""

    WORSE = "worse"
    BETTER = "better"


#: No difference that counts, in all that was seen.
EQUAL = frozenset({Kind.EQUIVALENT, Kind.TYPICAL})


@dataclass(frozen=True, slots=True)
class Basis:
    """What a verdict was made from: 95 % intervals of the log ratio to the baseline."""

    typical: Interval  # of the typical round
    totals: Interval | None = None  # of whole blocks; None: the same, since a block has one round
    unseen: Hidden = NOTHING_HIDDEN
    amount: Amount | None = None  # what is added, in the metric's unit


@dataclass(frozen=True, slots=True)
class Enough:
    """How many blocks would make an interval fit into the margin, were there no difference, and how long they take."""

    blocks: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict with its reason.

    ``certain``: that there is a difference, and to which side; by how much is another question. None: it is not known.
    """

    kind: Kind
    reason: Reason
    certain: Side | None = None
    basis: Basis | None = None  # None: there is no interval, nor one block's figure
    numbers: Mapping[str, float] = field(default_factory=dict)
    unlike: tuple[str, ...] = ()  # facts of the fairness manifest
    enough: Enough | None = None


@dataclass(frozen=True, slots=True)
class Closed:
    """Why a metric, or one platform in it, gets no verdict; ``numbers``: see `Reason`."""

    reason: Reason
    numbers: Mapping[str, float]

    def verdict(self, basis: Basis | None) -> Verdict:
        """The verdict `invalid`, in place of any other; ``basis``: what it would have been made from."""
        return Verdict(Kind.INVALID, self.reason, basis=basis, numbers=self.numbers)


@dataclass(frozen=True, slots=True)
class Question:
    """What a verdict is about: the metric's name, its direction, its margin as a fraction."""

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
    """The verdict (docs/method.md, Verdicts) on the typical round and on the ratio of totals (None: the same).

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
    """On which side of the baseline a platform lies by its 99 % interval, however small the difference is.

    None where the interval holds zero, where the typical round and whole blocks lie on different sides, and where there
    can be no verdict (`Hidden.no_verdict`).
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
    """The verdict by `decide`, with its reason and the intervals that it is from; ``amount``: kept for the report."""
    kind = decide(question, typical, totals, unseen)
    surely = certain(question, typical, totals, unseen)
    basis = Basis(typical.wide, None if totals is None else totals.wide, unseen, amount)
    if kind in {Kind.SLOWER, Kind.FASTER}:
        certain_side = Side.WORSE if kind is Kind.SLOWER else Side.BETTER
        in_typical_round = totals is None or side(question, typical, unseen) is kind
        return Verdict(kind, Reason.TYPICAL_ROUND if in_typical_round else Reason.WHOLE_BLOCKS, certain_side, basis)
    if kind in EQUAL:
        return Verdict(kind, Reason.WITHIN_MARGIN, surely, basis)
    return Verdict(kind, _why_open(question, typical, totals, unseen), surely, basis)


def _why_open(question: Question, typical: LogIntervals, totals: LogIntervals | None, unseen: Hidden) -> Reason:
    """Why the verdict is inconclusive."""
    over = overhead(typical.wide, question.direction)
    if unseen.no_verdict:
        return Reason.UNRELIABLE
    if over.low > question.margin or over.high < -question.margin:
        return Reason.CHANCE if side(question, typical) is None else Reason.LOOKS_DIFFER
    if _within(question, typical.narrow, 0.0, 0.0):
        if totals is not None and not _within(question, totals.narrow, 0.0, 0.0):
            return Reason.BLOCKS_WIDER
        return Reason.FAILED_BEYOND
    if certain(question, typical, totals, unseen) is not None:
        return Reason.SIZE_OPEN
    return Reason.CHANCE if over.low > 0 or over.high < 0 else Reason.WIDE_INTERVAL


def too_few(n_blocks: int, log: float | None, amount: Amount | None = None) -> Verdict:
    """The verdict on fewer blocks than an interval needs; ``log``: the log ratio, where there is one block."""
    if log is None:
        return Verdict(Kind.INCONCLUSIVE, Reason.TOO_FEW_BLOCKS, numbers={"blocks": n_blocks})
    return Verdict(Kind.INCONCLUSIVE, Reason.ONE_BLOCK, basis=Basis(Interval(log, log, log), amount=amount))


def within_noise(verdict: Verdict, margin: float, floor: Interval | None) -> Verdict:
    """Inconclusive in place of equivalent where the noise floor is wider than the margin (docs/method.md, Notes)."""
    if verdict.kind not in EQUAL or floor is None or floor.half_width <= margin:
        return verdict
    numbers = {"half_width": floor.half_width}
    return Verdict(Kind.INCONCLUSIVE, Reason.WIDE_FLOOR, basis=verdict.basis, numbers=numbers)


def aa_gate(question: Question, baseline: LogIntervals | None) -> Closed | None:
    """Why a metric gets no verdicts in this campaign: its two baseline arms differ. None: they do not.

    The two baseline arms run the same bits in the same way. When the interval of their difference excludes zero, and
    lies wholly beyond half of the margin, a difference was measured that is not there (docs/method.md, Gate).
    """
    if baseline is None:
        return None
    over = overhead(baseline.wide, question.direction)
    if -question.margin / 2 <= over.high and over.low <= question.margin / 2:
        return None
    return Closed(Reason.BASELINES_DIFFER, {"point": over.point, "low": over.low, "high": over.high})
