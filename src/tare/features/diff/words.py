"""Texts of `tare diff`: what was compared, what became of each figure, and what would tell the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.analysis.comparisons.sides import Way
from tare.estimates.intervals import Interval
from tare.features.diff.analysis import Absent, Diff, FigureChange, FigureOutcome, Gap, Lack, Piece
from tare.report.sentences.numbers import forecast, number_of, percent, quantity, rough, scaled
from tare.report.sentences.scale import at_most, coarse, difference, times_of
from tare.report.sentences.verdict_words import UNFIT

#: A mark for each outcome, which needs no colour.
MARKS: Mapping[FigureOutcome, str] = {FigureOutcome.REGRESSION: "▲", FigureOutcome.OPEN: "?", FigureOutcome.FINE: "="}
OUTCOMES: Mapping[FigureOutcome, str] = {
    FigureOutcome.REGRESSION: "regression",
    FigureOutcome.OPEN: "cannot tell",
    FigureOutcome.FINE: "no regression",
}
_COUNTS: Mapping[FigureOutcome, str] = {
    FigureOutcome.REGRESSION: "{} worse",
    FigureOutcome.OPEN: "{} open",
    FigureOutcome.FINE: "{} not worse",
}
_WAYS: Mapping[Way, str] = {
    Way.RELATIVE: "overheads against {baseline}, each in its own campaign",
    Way.ABSOLUTE: "the figures themselves, which the host's state is in",
    Way.PLATFORMS: "the platforms, block by block",
    Way.INSTRUCTIONS: "instructions that a whole machine executed, which is work and not time",
}
_GAPS: Mapping[Gap, str] = {
    Gap.TOO_FEW_BLOCKS: "fewer than 2 blocks",
    Gap.UNFIT: f"samples are {UNFIT}",
    Gap.NO_SPREAD: "all blocks show the same, and there are fewer than 8",
}

#: Of a change, a piece of code that makes up less is not named.
_MIN_SHARE = 0.03
_MAX_PIECES = 8
_LACKS: Mapping[Lack, str] = {
    Lack.OLD: "the older side has it not",
    Lack.NEW: "the newer side has it not",
    Lack.PARAMETERS: "it ran with other parameters",
    Lack.REVISION: "its figures are computed differently on the two sides",
}


#: Why the interval is wider than that of a single figure.
TOGETHER = (
    "Each end of an interval holds at 95 % for all figures at once, and a regression's lies wholly beyond its"
    " threshold; 'at most' holds at 95 % for its figure."
)
#: What the interval is where instructions were counted.
_RANGES = (
    "Ranges are over the repeats of both sides, each a machine whose kernel had other random numbers; no test is made."
)
_SINGLE = "A side has one machine: what other random numbers make of it is not known (tare footprint --repeats 5)."


#: Of a regression in SARIF: what it is, and how it is judged.
RULE = "A figure is worse by more than its threshold"
RULE_HELP = "docs/diff.md of tare says how a figure is judged"


def heading(diff: Diff) -> str:
    """Return what is compared with what, in a line."""
    way = _WAYS[diff.way].format(baseline=diff.baseline)
    return f"{diff.old} → {diff.new}: {way}; + is worse"


def conclusion(diff: Diff) -> str:
    """The outcome of the whole, with the number of figures."""
    return f"{OUTCOMES[diff.outcome]}: {counted([change.outcome for change in diff.changes], _COUNTS)}"


def counted(outcomes: Sequence[FigureOutcome], words: Mapping[FigureOutcome, str]) -> str:
    """Return how many figures had which outcome; ``words``: with ``{}`` for the number."""
    parts = [words[outcome].format(outcomes.count(outcome)) for outcome in FigureOutcome if outcome in outcomes]
    return f"of {number_of(len(outcomes), 'figure')} {', '.join(parts)}"


def figure(change: FigureChange) -> str:
    """The name of a figure that was compared: its workload and metric."""
    return f"{change.workload} {change.metric}"


def changed(change: FigureChange) -> str:
    """The change with what decides its outcome: the interval, or how much it is at most; "" where there is none."""
    if change.interval is None:
        return ""
    size, ends = difference(times_of(change.interval, change.direction), change.direction)
    if change.outcome is FigureOutcome.FINE and change.at_most is not None:
        most = times_of(Interval(change.at_most, change.at_most, change.at_most), change.direction).point
        return f"{size}, {at_most(most, change.direction)}"
    return f"{size}, {ends}"


def values(change: FigureChange) -> tuple[str, str]:
    """The older figure and the newer one, of which the change is: overheads where these are compared."""
    if change.old_times is not None and change.new_times is not None:
        old, new = (
            difference(Interval(times, times, times), change.direction, None)[0]
            for times in (change.old_times, change.new_times)
        )
        return old, new
    old, new = ("–" if mean is None else quantity(mean, change.unit) for mean in (change.old, change.new))
    return old, new


def why(change: FigureChange) -> str:
    """Return what the outcome rests on: the threshold, or what is missing."""
    if change.gap is not None:
        return _GAPS[change.gap]
    limit = percent(change.threshold)
    if change.outcome is FigureOutcome.REGRESSION:
        return f"worse by more than {limit}"
    if change.outcome is FigureOutcome.FINE:
        return f"not worse by {limit}"
    text = f"open whether by more than {limit}"
    if change.detectable is not None:
        sees = times_of(Interval(change.detectable, change.detectable, change.detectable), change.direction).point
        text += f": it would have found {coarse(sees, change.direction)} or more"
    if change.blocks is None:
        return text
    took = "" if change.seconds is None else f", {forecast(change.seconds)} of this workload"
    return f"{text}; about {rough(change.blocks)} blocks would tell{took}"


def explained(change: FigureChange) -> str:
    """Which code a change of counted instructions is of, the most changed first; "" where that is not known."""
    if change.old is None or change.new is None or not change.pieces:
        return ""
    difference = change.new - change.old
    shown = [piece for piece in change.pieces if abs(piece.new - piece.old) >= _MIN_SHARE * abs(difference)]
    if not shown:
        return ""
    amount = f"{scaled(abs(difference))} {'more' if difference > 0 else 'fewer'}"
    name = change.workload if change.workload == change.metric else figure(change)
    return f"{change.platform} {name}, {amount}: " + ", ".join(map(_piece, shown[:_MAX_PIECES]))


def _piece(piece: Piece) -> str:
    names = {"user": "all programs", "kernel": "all of the kernel"}
    call = "()" if piece.side == "kernel" and not piece.place.startswith("[") else ""
    name = f"{piece.place}{call}" if piece.place else names[piece.side]
    difference = piece.new - piece.old
    return f"{name} {'+' if difference >= 0 else '−'}{scaled(abs(difference))}"


def absent(entry: Absent) -> str:
    """Return what is not compared, and why."""
    name = entry.workload
    if entry.metric:
        name += f" {entry.metric} on {entry.platform}"
    return f"{name}: {_LACKS[entry.lack]}"


def more_in_table(number: int) -> str:
    """Return how many more figures there are than annotations."""
    return f"{number} more: see the table"


def alike(diff: Diff) -> str:
    """In which facts both sides differ."""
    if not diff.facts:
        return "Alike: host, image, agent and versions"
    return "Not alike: " + "; ".join(f"{fact.fact}: {fact.old} → {fact.new}" for fact in diff.facts)


def unchanged(number: int) -> str:
    """Say how many figures are not shown, as no change of them can be seen."""
    return (
        f"{number} more {'figure' if number == 1 else 'figures'} without a change that can be seen (--all shows them)"
    )


def intervals(diff: Diff) -> str:
    """Return what the intervals are, and where they are none."""
    if diff.way is not Way.INSTRUCTIONS:
        return TOGETHER
    single = any(min(change.n_old, change.n_new) == 1 for change in diff.changes)
    return f"{_RANGES} {_SINGLE}" if single else _RANGES
