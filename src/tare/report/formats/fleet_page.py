"""`tare fleet report` as a page: a picture of all hosts a figure, the odd ones named, and a table of hosts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tare.analysis.comparisons.merged_hosts import Fleet, MergedFigure
from tare.estimates.intervals import Interval
from tare.model import Direction
from tare.report.formats.html import rendered
from tare.report.parts.svg import LETTER, Drawing, axis_over, circle, draw_axis, plain
from tare.report.sentences import fleet_words as words
from tare.report.sentences.numbers import day

_WIDTH = 760.0
_TOP, _BOTTOM = 30.0, 26.0
#: Hosts up to which each row has its name and this height; more share `_TALL`, and only odd ones are named.
_NAMED, _ROW = 40, 18.0
_TALL = 560.0
#: Hosts that all pictures of a page draw together, and one at least.
_MOST_MARKS, _LEAST_MARKS = 60_000, 60
#: Between the names of neighbouring odd hosts.
_APART = 13.0
#: How far hosts' intervals reach beyond their points and the bands, of these' width.
_WIDEST = 0.5
#: A row lower than this has a small dot, and its interval only where it is odd.
_CROWDED = 7.0
#: Odd hosts that are described.
_MOST_ODD = 200
#: Hosts in the page's table.
MAX_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class FigureView:
    """A figure as the template shows it."""

    figure: MergedFigure
    title: str
    answer: str
    drawing: Drawing
    groups: list[tuple[str, ...]]
    note: str


def page(fleet: Fleet) -> str:
    """Render the whole page; all text in it is from files, and is escaped."""
    most = max(_LEAST_MARKS, _MOST_MARKS // max(1, len(fleet.figures)))
    views = [_view(fleet, figure, most) for figure in fleet.figures]
    first = [view for view in views if view.figure.headline or view.figure.odd.any()]
    odd = [words.odd_host(fleet, place, figures) for place, figures in itertools.islice(fleet.odd(), _MOST_ODD)]
    rest = len(fleet.odd_places) - len(odd)
    return rendered(
        "fleet.html",
        fleet=fleet,
        first=first,
        more=[view for view in views if view not in first],
        odd=odd,
        unnamed=words.more_odd(rest) if rest else "",
        hosts=[(host, day(host.created)) for host in fleet.hosts[:MAX_LISTED]],
        facts=_facts(fleet),
        words=words,
    )


def _facts(fleet: Fleet) -> list[str]:
    """Return the facts in which hosts differ, but for those of a version or a setting of one platform."""
    names = dict.fromkeys(name for host in fleet.hosts for name in host.facts if ":" not in name)
    return [name for name in names if len({host.facts.get(name) for host in fleet.hosts}) > 1]


def _view(fleet: Fleet, figure: MergedFigure, most: int) -> FigureView:
    places = rows(figure, most)
    groups: list[tuple[str, ...]] = [
        (words.group_name(fleet, group), str(group.n_hosts), *words.mean(group.mean, figure.direction),
         words.spread(group.spread), words.predicted(group.prediction, figure.direction))
        for group in figure.groups
    ]  # fmt: skip
    note = words.thinned(len(places), figure.n_hosts) if len(places) < figure.n_hosts else ""
    answer = words.answer(fleet, figure)
    return FigureView(figure, words.named(figure), answer, draw(fleet, figure, places), groups, note)


def rows(figure: MergedFigure, most: int) -> list[int]:
    """Choose the hosts to draw, the worst first: all odd ones, and of the others at even distances."""
    known = np.flatnonzero(np.isfinite(figure.effects))
    ordered = known[np.argsort(-figure.effects[known], kind="stable")]
    if ordered.size <= most:
        return [int(place) for place in ordered]
    odd = figure.odd[ordered]
    usual = np.flatnonzero(~odd)
    kept = odd.copy()
    kept[usual[np.linspace(0, usual.size - 1, max(2, most - int(odd.sum()))).astype(np.int64)]] = True
    return [int(place) for place in ordered[kept]]


def draw(fleet: Fleet, figure: MergedFigure, places: list[int]) -> Drawing:
    """Every host's figure with its interval, the worst on top; the mean as a line, bands for it and for a new host."""
    row = _ROW if len(places) <= _NAMED else _TALL / len(places)
    height = _TOP + row * len(places) + _BOTTOM
    drawing = Drawing(_WIDTH, height, words.picture(figure))
    names = [fleet.hosts[place].name for place in places]
    named = len(places) <= _NAMED
    left = min(190.0, 16 + LETTER * max(map(len, names), default=0)) if named else 14.0
    ends = _ends(figure, places)
    factor = max(ends) > math.log(2)
    shown = [_shown(value, figure.direction, factor=factor) for value in ends]
    right = _WIDTH - (14.0 if named or not figure.odd.any() else 190.0)
    axis = axis_over(shown, left, right, log=factor)
    bottom = height - _BOTTOM

    def at(value: float) -> float:
        return axis.at(_shown(value, figure.direction, factor=factor))

    if figure.prediction is not None:
        _band(drawing, at(figure.prediction.low), at(figure.prediction.high), bottom, words.PREDICTED)
    if math.isfinite(figure.mean.low):
        _band(drawing, at(figure.mean.low), at(figure.mean.high), bottom, words.OF_MEAN)
    draw_axis(drawing, axis, _TOP, bottom, lambda value: f"{plain(value)} ×" if factor else f"{plain(value)} %")
    drawing.line(at(figure.mean.point), _TOP, at(figure.mean.point), bottom, "zero")
    drawing.text(at(figure.mean.point), 14, words.effect(figure.mean.point, figure.direction), "soft", "middle")
    last = -_APART
    for number, place in enumerate(places):
        y = _TOP + row * (number + 0.5)
        _host(drawing, fleet, figure, place, y, at, crowded=row < _CROWDED)
        odd = bool(figure.odd[place])
        if named:
            drawing.text(left - 8, y, _short(fleet.hosts[place].name), _text_class(figure, place), "end")
        elif odd and max(y, last + _APART) < bottom:
            last = max(y, last + _APART)
            drawing.text(right + 8, last, _short(fleet.hosts[place].name), _text_class(figure, place))
    return drawing


def _host(
    drawing: Drawing,
    fleet: Fleet,
    figure: MergedFigure,
    place: int,
    y: float,
    at: Callable[[float], float],
    *,
    crowded: bool,
) -> None:
    point, error = float(figure.effects[place]), float(figure.errors[place])
    colour = _colour(figure, place)
    if not crowded or figure.odd[place]:
        low, high = at(point - 2 * error), at(point + 2 * error)
        drawing.add("path", d=f"M{min(low, high):.1f} {y:.1f}H{max(low, high):.1f}", class_=f"bar {colour}")
    title = words.of_host(fleet, figure, place)
    if crowded:
        drawing.add("circle", title=title, cx=at(point), cy=y, r=2.0, class_=f"symbol {colour}")
    else:
        drawing.add("path", d=circle(at(point), y), class_=f"symbol {colour}", title=title)


def _colour(figure: MergedFigure, place: int) -> str:
    if not figure.odd[place]:
        return "baseline"
    return "slower" if figure.deviations[place] > 0 else "faster"


def _text_class(figure: MergedFigure, place: int) -> str:
    colour = _colour(figure, place)
    return "soft" if colour == "baseline" else f"text-{colour}"


def _short(name: str) -> str:
    letters = 23
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def _band(drawing: Drawing, low: float, high: float, bottom: float, title: str) -> None:
    drawing.add(
        "rect", title=title, x=min(low, high), y=_TOP, width=abs(high - low), height=bottom - _TOP, class_="band"
    )


def _ends(figure: MergedFigure, places: list[int]) -> list[float]:
    """Return the values that a picture must hold, as logs."""
    bands = [ends for ends in (figure.mean, figure.prediction) if isinstance(ends, Interval)]
    of_bands = [end for band in bands for end in (band.low, band.high) if math.isfinite(end)]
    points, errors = figure.effects[places], figure.errors[places]
    values = [figure.mean.point, *of_bands, *points.tolist()]
    room = max(_WIDEST * (max(values) - min(values)), 1e-9)  # an interval beyond that is cut
    low, high = min(values) - room, max(values) + room
    return [*values, *np.clip(np.concatenate([points - 2 * errors, points + 2 * errors]), low, high).tolist()]


def _shown(log: float, direction: Direction, *, factor: bool) -> float:
    """Place a log of how many times worse on the axis: a factor where some are twice as bad, or per cent."""
    return math.exp(max(-300.0, min(300.0, log))) if factor else words.percents(log, direction)
