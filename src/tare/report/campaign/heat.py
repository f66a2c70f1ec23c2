"""Platforms by dimensions in one table: a mark and a figure in each cell, so that no cell needs its colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.analysis.answers import Dimension, State
from tare.report.campaign.cells import EMPTY
from tare.report.campaign.model import AnswerReport, DimensionReport, Report
from tare.report.sentences.answers import DIMENSIONS, EXPOSURE, EXPOSURE_MEANING, MEANINGS
from tare.report.sentences.numbers import percent

MARKS: Mapping[State, str] = {
    State.WORSE: "▲",
    State.BETTER: "▼",
    State.ALIKE: "=",
    State.OPEN: "?",
    State.ONCE: "·",
    State.NONE: EMPTY,
}
#: What each mark says, for the legend and for who hears the page.
WORDS: Mapping[State, str] = {
    State.WORSE: "worse for sure",
    State.BETTER: "better for sure",
    State.ALIKE: "equivalent within the margin",
    State.OPEN: "cannot tell yet",
    State.ONCE: "seen in one block only",
    State.NONE: "no figure",
}
#: From which `felt` on a cell is shaded how deeply: a little, clearly, much.
_SHADES = (0.03, 0.2, 0.8)


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A platform in a dimension. ``order``: what a table is sorted by, the better the lower; None: at the end."""

    state: State
    text: str  # "▲ +48 %"
    title: str
    shade: int  # 0 to 3
    order: float | None


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A platform; ``cost``: its CPU cost in per cent, where it is known; ``isolates``: not so a second baseline."""

    platform: str
    cells: tuple[HeatCell, ...]
    daemon: bool
    isolates: bool
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Heat:
    """The table; ``meanings``: of its columns."""

    columns: tuple[str, ...]
    meanings: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    states: tuple[State, ...]  # that are in it


_NOTHING = HeatCell(State.NONE, EMPTY, WORDS[State.NONE], 0, None)


def heat(report: Report) -> Heat:
    """The table of a report; without rows where it has no answers. Dimensions without a figure have no column."""
    dimensions = [
        dimension
        for dimension in Dimension
        if any(each.dimension is dimension and each.figure for answer in report.answers for each in answer.dimensions)
    ]
    exposure = any(answer.calls is not None for answer in report.answers)
    open_wholly = {each.name for each in report.platforms if "*" in each.open_by_design}
    rows = tuple(
        _row(answer, dimensions, exposure=exposure, isolates=answer.platform not in open_wholly)
        for answer in report.answers
    )
    seen = {cell.state for row in rows for cell in row.cells}
    return Heat(
        (*(DIMENSIONS[each] for each in dimensions), *((EXPOSURE,) if exposure else ())),
        (*(MEANINGS[each] for each in dimensions), *((EXPOSURE_MEANING,) if exposure else ())),
        rows,
        tuple(state for state in State if state in seen),
    )


def _row(answer: AnswerReport, dimensions: Sequence[Dimension], *, exposure: bool, isolates: bool) -> HeatRow:
    standings = {each.dimension: each for each in answer.dimensions}
    cells = [_cell(standings.get(dimension)) for dimension in dimensions]
    cost = standings[Dimension.CPU_COST].op_percent if Dimension.CPU_COST in standings else None
    exposed = (_exposure(answer),) if exposure else ()
    return HeatRow(answer.platform, (*cells, *exposed), answer.daemon, isolates, cost)


def _cell(standing: DimensionReport | None) -> HeatCell:
    if standing is None:
        return _NOTHING
    text = f"{MARKS[standing.state]} {standing.figure}".strip()
    title = f"{WORDS[standing.state]}; {standing.workload}: {standing.text}"
    order = standing.felt if standing.figure else None
    known = standing.state in {State.WORSE, State.BETTER}
    return HeatCell(standing.state, text, title, _shade(standing.felt) if known else 0, order)


def _exposure(answer: AnswerReport) -> HeatCell:
    """Fewer calls are better; how many there are was read and not estimated, so that any difference counts."""
    calls, baseline = answer.calls, answer.baseline_calls
    if calls is None or not baseline:
        return _NOTHING
    change = calls / baseline - 1
    state = State.ALIKE if calls == baseline else State.BETTER if change < 0 else State.WORSE
    sign = "+" if change > 0 else "\N{MINUS SIGN}"
    size = f" {sign}{percent(change)}," if change else ""
    title = f"{calls} of {baseline} system calls"
    return HeatCell(state, f"{MARKS[state]}{size} {calls}", title, _shade(change), float(calls))


def _shade(felt: float) -> int:
    return sum(abs(felt) >= limit for limit in _SHADES)
