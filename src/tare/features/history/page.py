"""`tare history` as a page: a drawing a figure with the stretches between its changes, and a table of campaigns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tare.analysis.comparisons.sides import Way
from tare.features.diff.analysis import FigureOutcome
from tare.features.diff.words import MARKS, OUTCOMES
from tare.features.history import words
from tare.features.history.analysis import History, Series
from tare.features.history.views import named
from tare.report.formats.html import rendered
from tare.report.parts.svg import Drawing, axis_over, plain
from tare.report.sentences.numbers import day

_WIDTH, _HEIGHT = 720.0, 170.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 14.0, 12.0, 34.0
#: The class that gives a drawing's colour (report.css).
_COLOURS = {FigureOutcome.REGRESSION: "slower", FigureOutcome.OPEN: "inconclusive", FigureOutcome.FINE: "equivalent"}


@dataclass(frozen=True, slots=True)
class SeriesView:
    """A figure as the template shows it."""

    series: Series
    title: str
    mark: str
    outcome: str
    limit: str
    texts: list[str]
    drawing: Drawing


def page(history: History) -> str:
    """The whole page; all text in it is from files, and is escaped."""
    views = [
        SeriesView(
            series,
            named(series),
            MARKS[series.outcome],
            OUTCOMES[series.outcome],
            words.limit(series),
            words.steps(history, series),
            draw(history, series),
        )
        for series in history.series
    ]
    return rendered("history.html", history=history, views=views, words=words, mark=MARKS[history.outcome])


def draw(history: History, series: Series) -> Drawing:
    """The figure of each campaign, in order and at equal distances; a line is the median of a stretch."""
    share = history.way is not Way.ABSOLUTE
    values = [100 * point.value if share else point.value for point in series.points]
    drawing = Drawing(_WIDTH, _HEIGHT, f"{named(series)} over {len(values)} campaigns")
    upright = axis_over(values, _HEIGHT - _BOTTOM, _TOP)
    across = axis_over([0.0, float(max(1, len(history.entries) - 1))], _LEFT, _WIDTH - _RIGHT)
    for tick in upright.ticks(4):
        y = upright.at(tick)
        drawing.line(_LEFT, y, _WIDTH - _RIGHT, y, "grid")
        drawing.text(_LEFT - 6, y, f"{plain(tick)} %" if share else plain(tick), "soft", "end")
    colour = _COLOURS[series.outcome]
    edges = [0, *(_place(series, step.campaign) for step in series.steps), len(values)]
    levels = [series.steps[0].before, *(step.after for step in series.steps)] if series.steps else []
    for step in series.steps:
        x = across.at(step.campaign - 0.5)
        drawing.line(x, _TOP, x, _HEIGHT - _BOTTOM, "zero")
    for (start, end), level in zip(itertools.pairwise(edges), levels, strict=True) if levels else ():
        y = upright.at(100 * level if share else level)
        first, last = (across.at(series.points[place].campaign) for place in (start, end - 1))
        drawing.line(first, y, last, y, f"bar {colour}")
    for point, value in zip(series.points, values, strict=True):
        entry = history.entries[point.campaign]
        title = f"{day(entry.created)} {entry.name}: {words.value(history, series, point.value)}"
        x, y = across.at(point.campaign), upright.at(value)
        drawing.add("circle", title=title, cx=x, cy=y, r=3.5, class_="dot")
    last_day = day(history.entries[-1].created)
    drawing.text(_LEFT, _HEIGHT - _BOTTOM + 16, day(history.entries[0].created), "soft")
    drawing.text(_WIDTH - _RIGHT, _HEIGHT - _BOTTOM + 16, last_day, "soft", "end")
    return drawing


def _place(series: Series, campaign: int) -> int:
    """The place of a campaign among the points of a series, which may lack some."""
    return next(place for place, point in enumerate(series.points) if point.campaign == campaign)
