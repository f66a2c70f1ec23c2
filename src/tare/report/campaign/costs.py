"""The page's picture of costs: what is known of each platform in each dimension, beside the margin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tare.analysis.answers import AnswerState, Dimension
from tare.estimates.intervals import Interval
from tare.model import Direction
from tare.report.campaign.campaign_drawings import STATE_SYMBOLS, SYMBOLS
from tare.report.model import DimensionReport, Report
from tare.report.parts.svg import LETTER, Axis, Drawing, axis_over, draw_axis, plain
from tare.report.sentences import captions
from tare.report.sentences.dimensions import DIMENSIONS, MARKS
from tare.report.sentences.scale import times_of

_TOP, _BOTTOM = 30, 26
#: Range of the axis, in times worse.
_NARROW, _FAR = 0.5, 500.0
#: Rows between dimensions, in lines.
_GAP = 0.6


@dataclass(frozen=True, slots=True)
class _Form:
    """The layout of the picture. ``stacked``: names and figures stand above their lines, as on a phone."""

    width: float
    line: int
    end: float  # of the axis
    stacked: bool

    def left(self, names: list[str]) -> float:
        """Return where the axis begins."""
        return 8.0 if self.stacked else 140 + LETTER * max(map(len, names))


_WIDE = _Form(width=760.0, line=18, end=600.0, stacked=False)
_PHONE = _Form(width=340.0, line=34, end=332.0, stacked=True)
_Rows = list[tuple[str, DimensionReport]]


def costs(report: Report, *, phone: bool = False) -> Drawing | None:
    """Return what is known of each platform in each dimension, as times worse on a logarithmic axis; None without any.

    The bands are the margins. ``phone``: for a screen as narrow as a phone's.
    """
    groups = [(dimension, rows) for dimension in Dimension if (rows := _rows(report, dimension))]
    if not groups:
        return None
    form = _PHONE if phone else _WIDE
    names = [answer.platform for answer in report.answers]
    heads = len(groups) if form.stacked else 0
    height = _TOP + form.line * sum(len(rows) + _GAP for _, rows in groups) + 18 * heads + _BOTTOM
    drawing = Drawing(form.width, height, captions.costs_label(report.baseline, names))
    axis = _axis(groups, form.left(names), form.end)
    drawing.text(axis.start, 10, captions.costs_axis(report.baseline), "soft")
    bottom = height - _BOTTOM
    draw_axis(drawing, axis, _TOP, bottom, lambda value: f"{plain(value)}\N{MULTIPLICATION SIGN}")
    margins = _margins(report)
    y = _TOP + form.line * _GAP / 2
    for dimension, rows in groups:
        if form.stacked:
            drawing.text(0, y + 8, DIMENSIONS[dimension])
            y += 18
        else:
            drawing.text(0, y + form.line / 2, DIMENSIONS[dimension])
        for platform, standing in rows:
            _band(drawing, axis, y, form, margins.get((standing.workload, standing.metric)))
            _row(drawing, axis, y, form, platform, standing)
            y += form.line
        y += form.line * _GAP
    drawing.line(axis.at(1), _TOP, axis.at(1), bottom, "zero")
    return drawing


def _rows(report: Report, dimension: Dimension) -> _Rows:
    return [
        (answer.platform, standing)
        for answer in report.answers
        for standing in answer.dimensions
        if standing.dimension is dimension
        and standing.state not in {AnswerState.NONE, AnswerState.OPEN}
        and _known(standing) is not None
    ]


def _axis(groups: list[tuple[Dimension, _Rows]], start: float, end: float) -> Axis:
    ends = [place for _, rows in groups for _, standing in rows for place in (_known(standing) or ())]
    return axis_over([_NARROW / 2, 2.0, *(min(max(place, _NARROW), _FAR) for place in ends)], start, end, log=True)


def _known(standing: DimensionReport) -> tuple[float, float] | None:
    """From how many times worse to how many; None where there is no ratio."""
    if standing.bound is not None:
        return standing.bound.low, standing.bound.high
    if standing.times is None:
        return None
    return standing.times_low or standing.times, standing.times_high or standing.times


def _margins(report: Report) -> Mapping[tuple[str, str], Interval]:
    """The margin of each figure, as times worse."""
    return {
        (result.workload, result.metric): _margin(result.margin_percent / 100, result.direction)
        for result in report.results
    }


def _margin(margin: float, direction: Direction) -> Interval:
    return times_of(Interval(0.0, -margin, margin), direction)


def _band(drawing: Drawing, axis: Axis, y: float, form: _Form, margin: Interval | None) -> None:
    if margin is None:
        return
    low, high = axis.at(margin.low), axis.at(margin.high)
    drawing.add("rect", x=low, y=y, width=max(high - low, 1.0), height=float(form.line), class_="band")


def _row(drawing: Drawing, axis: Axis, y: float, form: _Form, platform: str, standing: DimensionReport) -> None:
    """One platform: its interval, its place and its figure."""
    low, high = _known(standing) or (1.0, 1.0)
    kind = STATE_SYMBOLS.get(standing.state, "inconclusive")
    figure = f"{MARKS[standing.state]} {standing.figure}".strip()
    if form.stacked:
        letters = int((form.width - LETTER * len(figure) - 16) / LETTER)
        shown = platform if len(platform) <= letters else f"{platform[: letters - 1]}…"
        drawing.text(axis.start, y + 9, shown, "soft")
        drawing.text(axis.end, y + 9, figure, "soft", "end")
        middle = y + form.line - 9.0
    else:
        middle = y + form.line / 2
        drawing.text(axis.start - 8, middle, platform, "soft", "end")
        drawing.text(axis.end + 8, middle, figure, "soft")
    drawing.add("path", d=f"M{axis.at(low):.1f} {middle}H{axis.at(high):.1f}", class_=f"bar {kind}")
    if standing.times is not None:
        shape = SYMBOLS[kind](axis.at(standing.times), middle)
        drawing.add("path", d=shape, class_=f"symbol {kind}", title=f"{platform}: {standing.text}")
