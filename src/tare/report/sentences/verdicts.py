"""Sentences of verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tare.analysis.hidden import Hidden, highest_share
from tare.analysis.verdicts import Basis, Kind, Reason, Verdict
from tare.estimates.intervals import Amount, Interval
from tare.estimates.overhead import overhead, times_worse
from tare.model import Direction, Family
from tare.report.sentences.fairness import not_alike
from tare.report.sentences.numbers import (
    all_failed,
    amount_range,
    forecast,
    magnitude_range,
    percent,
    signed_range,
    times_range,
)
from tare.report.sentences.wording import Wording, wording

#: Beyond this factor a percentage is hard to read.
TIMES_FROM = 2.0
#: How samples without a logarithm are described.
UNFIT = "zero, negative or not finite"


@dataclass(frozen=True, slots=True)
class Subject:
    """The metric that a sentence is about; ``margin``: a fraction."""

    metric: str
    unit: str
    direction: Direction
    margin: float
    family: Family | None = None

    @property
    def words(self) -> Wording:
        """The phrases for a difference in this metric."""
        return wording(self.metric, self.unit, self.direction, self.family)


def kind_word(kind: Kind) -> str:
    """A verdict in a word that fits every metric: "worse" instead of "slower"."""
    return {Kind.SLOWER: "worse", Kind.FASTER: "better"}.get(kind, kind.value)


def verdict_text(verdict: Verdict, subject: Subject, platform: str) -> str:
    """The verdict on a platform as a sentence."""
    if verdict.reason is Reason.NOT_ALIKE:
        return not_alike(verdict.unlike, platform)
    if verdict.basis is None:
        return _WITHOUT_FIGURES[verdict.reason](verdict.numbers)
    if verdict.kind is Kind.INVALID:
        closed = closed_text(verdict.reason, verdict.numbers, subject)
        return f"invalid: {closed}; what was seen: {describe(subject, verdict.basis.typical, verdict.basis.amount)}"
    if verdict.kind is Kind.INCONCLUSIVE:
        return f"inconclusive: {_inconclusive(verdict, verdict.basis, subject)}{_enough(verdict, subject)}"
    return _concluded(verdict.kind, verdict.reason, verdict.basis, subject)


_WITHOUT_FIGURES: Mapping[Reason, Callable[[Mapping[str, float]], str]] = {
    Reason.BASELINE: lambda _: "the baseline",
    Reason.NO_DATA: lambda _: "no data",
    Reason.UNSUPPORTED: lambda _: "no data: the platform cannot do this",
    Reason.ALL_FAILED: lambda numbers: f"no data: {all_failed(round(numbers['failed']))}",
    Reason.NOT_SHOWN: lambda numbers: f"no data: none of its {numbers['ok']:.0f} good trials could show this",
    Reason.NO_BASELINE: lambda _: "no data: the baseline has none to compare with",
    Reason.ALL_MARKED: lambda _: "no data: no block is left that has it and the baseline",
    Reason.UNFIT: lambda numbers: _unfit(numbers, "samples"),
    Reason.UNFIT_BASELINE: lambda numbers: _unfit(numbers, "samples of the baseline"),
    Reason.TOO_FEW_BLOCKS: lambda numbers: (
        f"inconclusive: {numbers['blocks']:.0f} blocks with the baseline, at least 2 are needed"
    ),
}


def _unfit(numbers: Mapping[str, float], whose: str) -> str:
    return f"refused: {numbers['unfit']:.0f} of {numbers['samples']:.0f} {whose} are {UNFIT}, and have no ratio"


def closed_text(reason: Reason, numbers: Mapping[str, float], subject: Subject) -> str:
    """Why there is no verdict on a metric, or on a platform in it."""
    if reason is Reason.BASELINES_DIFFER:
        size, ends = magnitude_range(Interval(numbers["point"], numbers["low"], numbers["high"]))
        margin = percent(subject.margin)
        return f"the two baseline arms differ by {size} ({ends}), more than half of the {margin} margin"
    drift = f"{drift_text(numbers['correlation'])}, by {percent(numbers['size'])} from the first to the last"
    return f"of the two baseline arms {drift}" if reason is Reason.BASELINES_DRIFT else drift


def drift_text(correlation: float) -> str:
    """Say that a ratio drifts over blocks."""
    return f"the ratio drifts over the campaign: rank correlation with the block {correlation:+.2f}"


def wide_floor(half_width: float, margin: float) -> str:
    """Say that the noise floor of the baseline is wider than the margin."""
    return f"the noise floor ±{percent(half_width)} is wider than the {percent(margin)} margin"


def _concluded(kind: Kind, reason: Reason, basis: Basis, subject: Subject) -> str:
    margin = percent(subject.margin)
    if reason is Reason.WHOLE_BLOCKS and basis.totals is not None:
        typical = signed_range(overhead(basis.typical, subject.direction))
        return f"{describe(subject, basis.totals)}, over whole blocks; a typical round: {typical}"
    figures = _figures(basis, subject)
    if kind is Kind.EQUIVALENT:
        return f"equivalent within {margin} ({figures}){_excluded(basis.unseen)}"
    if kind is Kind.TYPICAL:
        return f"equivalent within {margin} in all that was seen ({figures}){_excluded(basis.unseen)}"
    return figures


def _figures(basis: Basis, subject: Subject) -> str:
    """The observed difference: with a sign where it may be none, else in the phrases of the metric."""
    over = overhead(basis.typical, subject.direction)
    if over.low <= 0 <= over.high:
        return _with_amount(subject, signed_range(over), basis.amount)
    return describe(subject, basis.typical, basis.amount)


def _excluded(unseen: Hidden) -> str:
    if not unseen.draws:
        return ""
    starts = f", {unseen.blocks} starts in more than {percent(highest_share(0, unseen.blocks))}"
    samples = f"; {unseen.draws} samples exclude only slow modes in more than {percent(unseen.share)} of them"
    return samples + starts if unseen.draws > unseen.blocks else samples


def _inconclusive(verdict: Verdict, basis: Basis, subject: Subject) -> str:
    """The observed difference, and why it allows no verdict."""
    if verdict.reason is Reason.ONE_BLOCK:
        size = _with_amount(subject, _size(subject, basis.typical)[0], basis.amount)
        return f"{size} in 1 block, and an interval needs 2"
    if verdict.reason is Reason.WIDE_FLOOR:
        over = signed_range(overhead(basis.typical, subject.direction))
        return f"{over}, but {wide_floor(verdict.numbers['half_width'], subject.margin)}"
    return f"{_figures(basis, subject)}{_WHY_OPEN[verdict.reason](verdict, basis, subject)}"


def _blocks_wider(_verdict: Verdict, basis: Basis, subject: Subject) -> str:
    assert basis.totals is not None
    return f" in a typical round, {signed_range(overhead(basis.totals, subject.direction))} over whole blocks"


def _size_open(verdict: Verdict, basis: Basis, subject: Subject) -> str:
    over = overhead(basis.typical, subject.direction)
    where = " over whole blocks" if over.low <= 0 <= over.high else ""
    return f": {verdict.certain} for sure{where}; whether by more than the {percent(subject.margin)} margin is open"


def _wide_interval(_verdict: Verdict, basis: Basis, subject: Subject) -> str:
    half_width = overhead(basis.typical, subject.direction).half_width
    return f"; known to ±{percent(half_width)}, the margin is {percent(subject.margin)}"


_WHY_OPEN: Mapping[Reason, Callable[[Verdict, Basis, Subject], str]] = {
    Reason.UNRELIABLE: lambda *_: "",
    Reason.CHANCE: lambda *_: ", but were there no difference, more than 1 of 100 campaigns would show as much",
    Reason.LOOKS_DIFFER: lambda _verdict, _evidence, subject: (
        f"; whole blocks, or trials that failed, may lie on the other side of the {percent(subject.margin)} margin"
    ),
    Reason.BLOCKS_WIDER: _blocks_wider,
    Reason.FAILED_BEYOND: lambda _verdict, _evidence, subject: (
        f"; trials that failed may lie beyond the {percent(subject.margin)} margin"
    ),
    Reason.SIZE_OPEN: _size_open,
    Reason.WIDE_INTERVAL: _wide_interval,
}


def _enough(verdict: Verdict, subject: Subject) -> str:
    """How long it would take until intervals are at most ± half of the margin; "" where that is not known."""
    if verdict.enough is None:
        return ""
    blocks, takes = verdict.enough.blocks, forecast(verdict.enough.seconds)
    return f"; ±{percent(subject.margin / 2)} would take about {blocks} blocks, {takes} of this workload alone"


def describe(subject: Subject, logs: Interval, amount: Amount | None = None) -> str:
    """The size of a difference in words: "4.1 % slower, 3.6 to 4.7"; beyond twice: "3.3 times slower, 3.2 to 3.4".

    With the amount first where the metric wants that: "+132 ms (128 to 137): 45 times slower, 43 to 47".
    """
    size, ends = _size(subject, logs)
    return _with_amount(subject, f"{size}, {ends}", amount)


def _size(subject: Subject, logs: Interval) -> tuple[str, str]:
    """The size of a difference and its interval: ("4.1 % slower", "3.6 to 4.7")."""
    over, factor = overhead(logs, subject.direction), times_worse(logs, subject.direction)
    worse = over.point > 0
    times = factor if worse else Interval(1 / factor.point, 1 / factor.high, 1 / factor.low)
    words = subject.words
    if times.point > TIMES_FROM:
        size, ends = times_range(times)
        phrase = words.times_worse if worse else words.times_better
    else:
        size, ends = magnitude_range(over)
        phrase = words.worse if worse else words.better
    return phrase.format(size), ends


def _with_amount(subject: Subject, figures: str, amount: Amount | None) -> str:
    if amount is None or not subject.words.amount_first:
        return figures
    size, ends = amount_range(amount.point, amount.ends, amount.unit)
    return f"{size} ({ends}): {figures}" if ends else f"{size}: {figures}"
