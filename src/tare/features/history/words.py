"""Texts of `tare history`: where a figure changed, what else changed there, and what a history lacks."""

from __future__ import annotations

from collections.abc import Mapping

from tare.analysis.comparisons.sides import Way
from tare.analysis.comparisons.summaries import LeftOutCampaign, Why
from tare.estimates.intervals import Interval
from tare.features.diff.analysis import FigureOutcome
from tare.features.diff.words import OUTCOMES, counted
from tare.features.history.analysis import History, HistoryEntry, HistoryStep, Series
from tare.report.sentences.numbers import day, number_of, percent, quantity
from tare.report.sentences.scale import difference, times_of

_COUNTS: Mapping[FigureOutcome, str] = {
    FigureOutcome.REGRESSION: "{} worse since the last change",
    FigureOutcome.OPEN: "{} open",
    FigureOutcome.FINE: "{} not worse",
}
_WHY: Mapping[Why, str] = {
    Why.HOST: "another host than the newest campaign's",
    Why.BASELINE: "another baseline than the newest campaign's (--absolute compares figures themselves)",
    Why.SEQUENTIAL: "no baseline beside each figure (--absolute)",
    Why.UNREADABLE: "cannot be read: {}",
    Why.SAME_CAMPAIGN: "the same campaign as {}, which counts once",
    Why.WORK: "not its {}: other parameters than the newest campaign's, or figures that are computed differently",
}
#: The head of what changed besides figures.
DIFFERENCES = "what differs from the one before"
#: What the changes rest on.
METHOD = (
    "Changes: e-divisive with permutations, 5 % shared among all figures; a change needs 5 campaigns on either side: "
    "ask tare diff of the newest ones. A figure is not worse where a step of its threshold would have been seen."
)


def heading(history: History) -> str:
    """Return what is shown, in a line."""
    first, last = history.entries[0], history.entries[-1]
    figures = "the figures themselves" if history.way is Way.ABSOLUTE else f"overheads against {history.baseline}"
    campaigns = number_of(len(history.entries), "campaign")
    return f"{campaigns}, {day(first.created)} to {day(last.created)}: {figures}; + is worse"


def conclusion(history: History) -> str:
    """The outcome of the whole, with the number of figures."""
    outcomes = [series.outcome for series in history.series]
    return f"{OUTCOMES[history.outcome]}: {counted(outcomes, _COUNTS) if outcomes else 'the campaigns have no figure'}"


def value(history: History, series: Series, number: float) -> str:
    """A point's value: an overhead, or the figure with its unit."""
    return quantity(number, series.unit) if history.way is Way.ABSOLUTE else _percents(number, series)


def _percents(fraction: float, series: Series) -> str:
    """A fraction, positive is worse, on the scale of all tables: per cent up to twice, else a factor."""
    times = times_of(Interval(fraction, fraction, fraction), series.direction)
    return difference(times, series.direction, None)[0]


def step(history: History, series: Series, change: HistoryStep) -> str:
    """A change: when, by how much, and what else changed."""
    entry: HistoryEntry = history.entries[change.campaign]
    span = f"{value(history, series, change.before)} → {value(history, series, change.after)}"
    times = times_of(Interval(change.change, change.low, change.high), series.direction)
    size, ends = difference(times, series.direction)
    text = f"since {day(entry.created)} ({entry.name}) {size}, {ends} ({span})"
    facts = "; ".join(f"{fact.fact}: {fact.old} → {fact.new}" for fact in change.facts)
    return f"{text}; {facts}" if facts else f"{text}; nothing else on record changed"


def steps(history: History, series: Series) -> list[str]:
    """All that is said of a series, the newest change first."""
    if series.lacking:
        return [f"{number_of(series.lacking, 'campaign')} more would show a change"]
    seen = []
    if series.detectable is not None and series.outcome is not FigureOutcome.REGRESSION:
        seen.append(f"a step of {_percents(series.detectable, series)} or more would have been seen")
    if not series.steps:
        return [f"no change was seen; {seen[0]}" if seen else "no change was seen"]
    return [*(step(history, series, change) for change in reversed(series.steps)), *seen]


def limit(series: Series) -> str:
    """From which change on it is a regression."""
    return percent(series.threshold)


def left_out(entry: LeftOutCampaign) -> str:
    """A campaign that is no part of the history, and why."""
    return f"{entry.name}: {_WHY[entry.why].format(entry.text)}"


def more_left_out(number: int) -> str:
    """Return how many more campaigns are no part of it."""
    return f"Left out: {number} more (--json has all)"


def unchanged(number: int) -> str:
    """Say how many figures are not shown, as they have not changed."""
    return f"{number} more {'figure' if number == 1 else 'figures'} without a change (--all shows them)"
