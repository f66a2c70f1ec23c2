"""Sentences of verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tare.analysis.effects import Effect
from tare.analysis.hidden import Hidden, highest_share
from tare.analysis.verdicts import Basis, Reason, Verdict, VerdictKind
from tare.estimates.intervals import Interval
from tare.estimates.overhead import times_worse
from tare.model import Direction, Family
from tare.report.sentences.fairness_words import not_alike
from tare.report.sentences.numbers import all_failed, forecast, percent, rough
from tare.report.sentences.scale import amount, bound_phrase, difference, phrase, times_of
from tare.report.sentences.wording import Wording, wording

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


def kind_word(kind: VerdictKind) -> str:
    """A verdict in a word that fits every metric: "worse" instead of "slower"."""
    return {VerdictKind.SLOWER: "worse", VerdictKind.FASTER: "better"}.get(kind, kind.value)


def verdict_text(verdict: Verdict, subject: Subject, platform: str, effect: Effect | None = None) -> str:
    """The verdict on a platform as a sentence. ``effect``: the figure that it is of."""
    if verdict.reason is Reason.NOT_ALIKE:
        return not_alike(verdict.unlike, platform)
    if verdict.basis is None or effect is None:
        return _WITHOUT_FIGURES[verdict.reason](verdict.numbers)
    if verdict.kind is VerdictKind.INVALID:
        closed = closed_text(verdict.reason, verdict.numbers, subject)
        return f"invalid: {closed}; what was seen: {described(subject, effect)}"
    if verdict.kind is VerdictKind.INCONCLUSIVE:
        return f"inconclusive: {_inconclusive(verdict, verdict.basis, subject, effect)}{_enough(verdict, subject)}"
    return _concluded(verdict, verdict.basis, subject, effect)


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
    """Return why there is no verdict on a metric, or on a platform in it."""
    if reason is Reason.BASELINES_DIFFER:
        over = Interval(numbers["point"], numbers["low"], numbers["high"])
        size, ends = difference(times_of(over, subject.direction), subject.direction)
        margin = percent(subject.margin)
        return f"the two baseline arms differ by {size} ({ends}), more than half of the {margin} margin"
    drift = f"{drift_text(numbers['correlation'])}, by {percent(numbers['size'])} from the first to the last"
    return f"of the two baseline arms {drift}" if reason is Reason.BASELINES_DRIFT else drift


def drift_text(correlation: float) -> str:
    """Say that a ratio drifts over blocks."""
    return f"the ratio drifts over the campaign: rank correlation with the block {correlation:+.2f}"


def wide_floor(half_width: float, subject: Subject) -> str:
    """Say that the noise floor of the baseline is wider than the margin."""
    return f"the noise floor ±{percent(half_width)} is wider than the {percent(subject.margin)} margin"


def _concluded(verdict: Verdict, basis: Basis, subject: Subject, effect: Effect) -> str:
    margin, figures = percent(subject.margin), described(subject, effect)
    if verdict.reason is Reason.WHOLE_BLOCKS:
        return f"{figures}, over whole blocks; a typical round: {_typical(basis, subject)}"
    if verdict.kind is VerdictKind.EQUIVALENT:
        return f"equivalent within {margin} ({figures}){_excluded(basis.unseen)}"
    if verdict.kind is VerdictKind.TYPICAL:
        return f"equivalent within {margin} in all that was seen ({figures}){_excluded(basis.unseen)}"
    return figures


def _typical(basis: Basis, subject: Subject) -> str:
    """The typical round, where the figure is of whole blocks."""
    return ", ".join(difference(times_worse(basis.typical, subject.direction), subject.direction))


def _excluded(unseen: Hidden) -> str:
    if not unseen.draws:
        return ""
    starts = f", {unseen.blocks} starts in more than {percent(highest_share(0, unseen.blocks))}"
    samples = f"; {unseen.draws} samples exclude only slow modes in more than {percent(unseen.share)} of them"
    return samples + starts if unseen.draws > unseen.blocks else samples


def _inconclusive(verdict: Verdict, basis: Basis, subject: Subject, effect: Effect) -> str:
    """Return what is known, the observed difference, and why it allows no verdict."""
    figures = described(subject, effect)
    if verdict.reason is Reason.ONE_BLOCK:
        return f"{figures} in 1 block, and an interval needs 2"
    known = ""
    if effect.bound is not None:
        unit = effect.amount.unit if effect.amount and subject.words.amount_first else None
        known = f"{bound_phrase(effect.bound, subject.direction, subject.words, unit)} in what was seen; "
    return f"{known}{figures}{_WHY_OPEN[verdict.reason](verdict, basis, subject)}"


def _size_open(verdict: Verdict, _basis: Basis, subject: Subject) -> str:
    return f": surely {verdict.certain}; whether by more than the {percent(subject.margin)} margin is open"


_WHY_OPEN: Mapping[Reason, Callable[[Verdict, Basis, Subject], str]] = {
    Reason.UNRELIABLE: lambda *_: "",
    Reason.CHANCE: lambda *_: ": were there no difference, more than 1 of 100 campaigns would show as much",
    Reason.LOOKS_DIFFER: lambda _verdict, _evidence, subject: (
        f"; whole blocks, or trials that failed, may lie on the other side of the {percent(subject.margin)} margin"
    ),
    Reason.BLOCKS_WIDER: lambda _verdict, basis, subject: (
        f", over whole blocks; a typical round, within the margin: {_typical(basis, subject)}"
    ),
    Reason.FAILED_BEYOND: lambda _verdict, _evidence, subject: (
        f"; trials that failed may lie beyond the {percent(subject.margin)} margin"
    ),
    Reason.SIZE_OPEN: _size_open,
    Reason.WIDE_INTERVAL: lambda _verdict, _evidence, subject: f"; the margin is {percent(subject.margin)}",
    Reason.WIDE_FLOOR: lambda verdict, _evidence, subject: (
        f", but {wide_floor(verdict.numbers['half_width'], subject)}"
    ),
}


def _enough(verdict: Verdict, subject: Subject) -> str:
    """Return how long it would take until intervals are at most ± half of the margin; "" where that is not known."""
    if verdict.enough is None:
        return ""
    enough = verdict.enough
    blocks = f"{rough(enough.blocks)} blocks ({rough(enough.low)} to {rough(enough.high)})"
    width = percent(subject.margin / 2)
    return f"; ±{width} would take about {blocks}, {forecast(enough.seconds)} of this workload"


def described(subject: Subject, effect: Effect) -> str:
    """The size of a difference in words: "4.1 % slower, 3.6 to 4.7"; beyond twice: "3.3 times slower, 3.2 to 3.4".

    With the amount first where the metric wants that: "+132 ms (128 to 137): 45 times slower, 43 to 47".
    """
    size, ends = phrase(effect.times, subject.direction, subject.words, effect.level)
    figures = f"{size}, {ends}" if ends else size
    if effect.amount is None or not subject.words.amount_first:
        return figures
    size, ends = amount(effect.amount)
    return f"{size} ({ends}): {figures}" if ends else f"{size}: {figures}"
