"""Platforms by dimensions in one table: a mark and a figure in each cell, so that no cell needs its colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.analysis.answers import AnswerState, Dimension
from tare.report.campaign.choose import amount, by_cost, by_use, isolating
from tare.report.campaign.use_views import Weighed, costs_of, for_page, weighed
from tare.report.model import AnswerReport, DimensionReport, Report
from tare.report.sentences.choice_words import Criterion
from tare.report.sentences.dimensions import DIMENSIONS, EXPOSURE, EXPOSURE_MEANING, MARKS, MEANINGS, WORDS
from tare.report.sentences.numbers import EMPTY, percent
from tare.report.sentences.use_words import Aspect, not_known, weighted_figure

#: From which `felt` on a cell is shaded how deeply: a little, clearly, much.
_SHADES = (0.03, 0.2, 0.8)


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A platform in a dimension. ``order``: what a table is sorted by, the better the lower; None: at the end."""

    state: AnswerState
    text: str  # "▲ +48 %"
    title: str
    shade: int  # 0 to 3
    order: float | None


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A platform; ``place``: its answer's in the report; ``isolates``: not so a second baseline.

    ``amounts``: what the page's filters limit, where it is known. ``needs``: the daemon and root, in words. ``root``:
    whether it needs root; None: not known.
    """

    platform: str
    place: int
    cells: tuple[HeatCell, ...]
    needs: str
    daemon: bool
    root: bool | None
    isolates: bool
    amounts: Mapping[Criterion, float]
    weighted: HeatCell | None = None  # where platforms are sorted by weights
    costs: str = "{}"  # what the page's script weighs again (`tare.report.campaign.use_views.for_page`)


@dataclass(frozen=True, slots=True)
class Heat:
    """The table, the least cost first; ``meanings``: of its columns."""

    columns: tuple[str, ...]
    meanings: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    states: tuple[AnswerState, ...]  # that are in it


_NOTHING = HeatCell(AnswerState.NONE, EMPTY, WORDS[AnswerState.NONE], 0, None)


def heat(report: Report, weights: Mapping[Aspect, float] | None = None) -> Heat:
    """The table of a report; without rows where it has no answers. Dimensions without a figure have no column.

    ``weights``: by which platforms are sorted, and have a weighted cost; None: the least CPU cost comes first.
    """
    dimensions = [
        dimension
        for dimension in Dimension
        if any(
            standing.dimension is dimension and standing.state is not AnswerState.NONE
            for answer in report.answers
            for standing in answer.dimensions
        )
    ]
    exposure = any(answer.calls is not None for answer in report.answers)
    isolate = isolating(report)
    daemons = {platform.name: platform.daemon for platform in report.platforms}
    costs = {} if weights is None else {of.platform: _weighted(of) for of in weighed(report, weights)}
    rows = tuple(
        _row(
            answer,
            report.answers.index(answer),
            dimensions,
            needs_of(answer, daemons[answer.platform]),
            exposure=exposure,
            isolates=answer.platform in isolate,
            weighted=costs.get(answer.platform),
            costs=for_page(costs_of(report, answer)),
        )
        for answer in (by_cost(report) if weights is None else by_use(report, weights))
    )
    states = {cell.state for row in rows for cell in row.cells}
    return Heat(
        (*(DIMENSIONS[column] for column in dimensions), *((EXPOSURE,) if exposure else ())),
        (*(MEANINGS[column] for column in dimensions), *((EXPOSURE_MEANING,) if exposure else ())),
        rows,
        tuple(state for state in AnswerState if state in states),
    )


def needs_of(answer: AnswerReport, daemon: str | None) -> str:
    """Return what a platform needs on the host: "dockerd, root". ``daemon``: its name, where the campaign says it."""
    names = [daemon or "a daemon"] if answer.daemon else []
    if answer.needs_root is None:
        return ", ".join(names) or "no daemon"
    return ", ".join([*names, *(["root"] if answer.needs_root else [])]) or "nothing"


def _row(
    answer: AnswerReport, place: int, dimensions: Sequence[Dimension], needs: str, *, exposure: bool, isolates: bool,
    weighted: HeatCell | None, costs: str,
) -> HeatRow:  # fmt: skip
    standings = {standing.dimension: standing for standing in answer.dimensions}
    cells = [_cell(standings.get(dimension)) for dimension in dimensions]
    exposed = (_exposure(answer),) if exposure else ()
    amounts = {kind: value for kind in Criterion if (value := amount(answer, kind)) is not None}
    return HeatRow(
        answer.platform,
        place,
        (*cells, *exposed),
        needs,
        answer.daemon,
        answer.needs_root,
        isolates,
        amounts,
        weighted,
        costs,
    )


def _cell(standing: DimensionReport | None) -> HeatCell:
    if standing is None:
        return _NOTHING
    text = f"{MARKS[standing.state]} {standing.figure}".strip()
    title = f"{WORDS[standing.state]}; {standing.workload}: {standing.text}"
    order = None if standing.state in {AnswerState.NONE, AnswerState.OPEN} else standing.felt
    differs = standing.state in {AnswerState.WORSE, AnswerState.BETTER}
    return HeatCell(standing.state, text, title, _shade(standing.felt) if differs else 0, order)


def _weighted(of: Weighed) -> HeatCell:
    if of.times is None:
        return HeatCell(AnswerState.NONE, EMPTY, not_known(of.missing), 0, None)
    figure, ends = weighted_figure(of.times)
    state = AnswerState.ALIKE if of.sure else AnswerState.OPEN
    return HeatCell(state, f"{MARKS[state]} {figure}" if state is AnswerState.OPEN else figure, ends, 0, of.times.point)


def _exposure(answer: AnswerReport) -> HeatCell:
    """Fewer calls are better; how many there are was read and not estimated, so that any difference counts."""
    calls, baseline = answer.calls, answer.baseline_calls
    if calls is None or not baseline:
        return _NOTHING
    change = calls / baseline - 1
    state = AnswerState.ALIKE if calls == baseline else AnswerState.BETTER if change < 0 else AnswerState.WORSE
    sign = "+" if change > 0 else "\N{MINUS SIGN}"
    size = f" {sign}{percent(change)}," if change else ""
    title = f"{calls} of {baseline} system calls"
    return HeatCell(state, f"{MARKS[state]}{size} {calls}", title, _shade(change), float(calls))


def _shade(felt: float) -> int:
    return sum(abs(felt) >= limit for limit in _SHADES)
