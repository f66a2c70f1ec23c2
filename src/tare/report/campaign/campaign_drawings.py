"""Figures of a campaign as SVG: intervals, samples, start-up, the noise floor, cost against exposure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from tare.analysis.answers import AnswerState, Dimension
from tare.report.campaign.campaign_figures import FloorFigure, MetricFigure, Panel, Percents, StartBars, StartFigure
from tare.report.model import Report
from tare.report.parts.svg import LETTER, Axis, Drawing, axis_over, circle, draw_axis, join, plain, row_labels
from tare.report.sentences import captions
from tare.report.sentences.dimensions import DIMENSIONS, EXPOSURE
from tare.report.sentences.numbers import quantity

_ROW = 26
_TOP = 30
_BOTTOM = 26
_WIDTH = 520.0
#: The picture of the noise floor ends here, in per cent.
_FLOOR_LIMIT = 20.0
#: Costs up to here, as `_squeezed`, always have their place: a drawing of equals must not pull them apart.
_NEAR = 0.4


def metric(figure: MetricFigure) -> Markup:
    """Intervals against the baseline, and beside them every sample."""
    return Markup('<div class="pair">{}</div>').format(join(_forest(figure), _strip(figure)))


def _forest(figure: MetricFigure) -> Drawing:
    names = figure.rows
    height = _TOP + _ROW * len(names) + _BOTTOM
    drawing = Drawing(_WIDTH, height, captions.intervals_label(figure.baseline, figure.label))
    left = row_labels(drawing, names, _TOP, _ROW)
    limit, bottom = figure.limit, height - _BOTTOM
    axis = Axis(-limit, limit, left, _WIDTH - 12)
    drawing.text(left, 10, captions.intervals_axis(figure.baseline), "soft")
    low, high = axis.at(-figure.margin), axis.at(figure.margin)
    drawing.add("rect", x=low, y=_TOP, width=high - low, height=bottom - _TOP, class_="band")
    draw_axis(drawing, axis, _TOP, bottom, lambda value: f"{plain(value)} %")
    drawing.line(axis.at(0), _TOP, axis.at(0), bottom, "zero")
    if figure.floor is not None:
        floor_row, noise = figure.floor
        shown = f"A/A: {noise.point:.2f} %, {noise.low:.2f} to {noise.high:.2f}"
        _interval(drawing, axis, _y(floor_row), noise, "baseline", shown)
    drawing.text(axis.at(0) + 6, _y(0), f"{figure.baseline} = 0", "soft")
    for row in figure.intervals:
        point = row.overhead.point
        if point is None:
            drawing.text(axis.at(0) + 6, _y(row.row), row.text, "soft")
        elif abs(point) > limit:
            worse = point > 0
            drawing.text(
                axis.at(math.copysign(limit, point)) + (-4 if worse else 4),
                _y(row.row),
                f"{row.text} ▸" if worse else f"◂ {row.text}",
                f"text-{row.sign}",
                "end" if worse else "start",
            )
        else:
            _interval(drawing, axis, _y(row.row), row.overhead, row.sign, f"{row.name}: {row.hover}")
    return drawing


def _y(row: int) -> float:
    return _TOP + _ROW * (row + 0.5)


def _interval(drawing: Drawing, axis: Axis, y: float, shown: Percents, kind: str, title: str) -> None:
    assert shown.point is not None
    x = axis.at(shown.point)
    if shown.low is not None and shown.high is not None:
        low, high = axis.at(shown.low), axis.at(shown.high)
        drawing.add(
            "path", d=f"M{low:.1f} {y}H{high:.1f}M{low:.1f} {y - 4}v8M{high:.1f} {y - 4}v8", class_=f"bar {kind}"
        )
    drawing.add("path", d=SYMBOLS[kind](x, y), class_=f"symbol {kind}", title=title)


#: A shape for each sign, so that none needs its colour; the style fills them or leaves them hollow.
SYMBOLS: Mapping[str, Callable[[float, float], str]] = {
    "baseline": circle,
    "slower": lambda x, y: f"M{x - 4:.1f} {y - 5.5}l9.5 5.5l-9.5 5.5z",
    "faster": lambda x, y: f"M{x + 4:.1f} {y - 5.5}l-9.5 5.5l9.5 5.5z",
    "surely-worse": lambda x, y: f"M{x - 4:.1f} {y - 5.5}l9.5 5.5l-9.5 5.5z",
    "surely-better": lambda x, y: f"M{x + 4:.1f} {y - 5.5}l-9.5 5.5l9.5 5.5z",
    "equivalent": circle,
    "typical": circle,
    "inconclusive": lambda x, y: f"M{x:.1f} {y - 6}l6 6l-6 6l-6 -6z",
    "bounded": lambda x, y: f"M{x:.1f} {y - 6}l6 6l-6 6l-6 -6z",
    "invalid": lambda x, y: f"M{x - 5:.1f} {y - 5}l10 10m0 -10l-10 10",
    "no-data": lambda x, y: f"M{x - 6:.1f} {y}h12",
}


#: The shape of a standing; of all others that of what is open.
STATE_SYMBOLS: Mapping[AnswerState, str] = {
    AnswerState.WORSE: "slower",
    AnswerState.BETTER: "faster",
    AnswerState.SURELY_WORSE: "surely-worse",
    AnswerState.SURELY_BETTER: "surely-better",
    AnswerState.ALIKE: "equivalent",
}


def _strip(figure: MetricFigure) -> Drawing:
    names = figure.rows
    height = _TOP + _ROW * len(names) + _BOTTOM
    drawing = Drawing(_WIDTH, height, captions.samples_label(figure.label))
    left = row_labels(drawing, names, _TOP, _ROW)
    values = [value for strip in figure.strips for value in strip.values if value is not None]
    log = figure.log and min(values, default=0.0) > 0
    axis = axis_over(values, left, _WIDTH - 12, log=log)
    drawing.text(left, 10, captions.samples_axis(figure.better), "soft")
    draw_axis(drawing, axis, _TOP, height - _BOTTOM, plain)
    for row, strip in enumerate(figure.strips):
        points = "".join(
            f"M{axis.at(value):.1f} {_y(row) + _jitter(at):.1f}h0"
            for at, value in enumerate(strip.values)
            if value is not None
        )
        if points:
            drawing.add("path", d=points, class_=f"points {strip.sign}", title=strip.name)
        if strip.median is not None:
            x = axis.at(strip.median)
            drawing.add("path", d=f"M{x:.1f} {_y(row) - 10}v20", class_="median", title=f"median {strip.median:,.6g}")
    return drawing


def _jitter(index: int) -> float:
    """The same at every drawing."""
    return ((index * 0.618034) % 1 - 0.5) * 14


def floor(figure: FloorFigure) -> Drawing:
    """The A/A interval of every metric in its margin."""
    rows = figure.rows
    height = 12 + 22 * len(rows) + _BOTTOM
    drawing = Drawing(760.0, height, captions.floor_label(figure.baseline))
    left = row_labels(drawing, [row.name for row in rows], 8, 22, widest=240.0)
    ends = [max(row.margin, abs(row.interval.low or 0.0), abs(row.interval.high or 0.0)) for row in rows]
    worst = 1.1 * min(_FLOOR_LIMIT, max(ends))
    axis = Axis(-worst, worst, left, 748)
    draw_axis(drawing, axis, 8, height - _BOTTOM, lambda value: f"{plain(value)} %")
    for at, row in enumerate(rows):
        y = 8 + 22 * (at + 0.5)
        low, high = axis.at(-row.margin), axis.at(row.margin)
        drawing.add("rect", x=low, y=y - 7, width=high - low, height=14, class_="band")
        title = captions.floor_title(row.name, row.interval.point or 0.0, silent=row.silent)
        _interval(drawing, axis, y, row.interval, "equivalent" if row.silent else "inconclusive", title)
    drawing.line(axis.at(0), 8, axis.at(0), height - _BOTTOM, "zero")
    return drawing


def start(figure: StartFigure) -> Markup:
    """Stacked parts on an absolute axis, and the distributions, a panel a mark."""
    panels = [_curves(panel, figure.order) for panel in figure.panels]
    parts = [_parts(figure.bars)] if figure.bars.rows else []
    key = join(*(curve_key(at, name) for at, name in enumerate(figure.order)))
    curves = Markup('<p class="small keys">{}</p><div class="pair">{}</div>').format(key, join(*panels))
    return join(*parts, Markup("<details><summary>Distributions</summary>{}</details>").format(curves))


def _parts(bars: StartBars) -> Markup:
    names, rows = bars.parts, bars.rows
    height = 8 + _ROW * len(rows) + _BOTTOM
    drawing = Drawing(900.0, height, captions.parts_label(bars.unit))
    left = row_labels(drawing, [row.name for row in rows], 4, _ROW)
    axis = axis_over([row.end for row in rows], left, 810, zero=True)
    draw_axis(drawing, axis, 4, height - _BOTTOM, lambda value: f"{plain(value)} {bars.unit}" if value else "0")
    for at, row in enumerate(rows):
        y, begin = 4 + _ROW * at, 0.0
        for name, value in zip(names, row.parts, strict=True):
            if value:
                x = axis.at(begin)
                title = f"{row.name}, {name}: {quantity(value, bars.unit)}"
                drawing.add(
                    "rect",
                    x=x,
                    y=y + 5,
                    width=max(0.8, axis.at(begin + value) - x),
                    height=_ROW - 10,
                    class_=f"part part-{names.index(name)}",
                    title=title,
                )
                begin += value
        if row.mark is not None:
            x = axis.at(row.mark)
            title = f"{row.name}, {bars.mark}: {quantity(row.mark, bars.unit)}"
            drawing.add("path", d=f"M{x:.1f} {y + 2}v{_ROW - 4}", class_="median", title=title)
        drawing.text(axis.at(row.end) + 6, y + _ROW / 2, quantity(row.end, bars.unit), "soft")
    keys = join(
        *(
            Markup('<span class="key"><i class="swatch-part part-{}"></i> {}</span>').format(at, name)
            for at, name in enumerate(names)
        )
    )
    note = Markup('<p class="small keys">{}{}</p>').format(keys, f" ┃ {bars.mark}" if bars.mark else "")
    return join(note, drawing)


def _curves(panel: Panel, order: Sequence[str]) -> Drawing:
    drawing = Drawing(_WIDTH, 260, captions.starts_label(panel.label))
    everything = [value for curve in panel.curves for value in curve.times]
    log = bool(everything) and min(everything) > 0 and max(everything) / min(everything) > 8
    axis, up = axis_over(everything, 40, _WIDTH - 12, log=log), Axis(0, 1, 234, 24)
    drawing.text(40, 10, panel.label, "soft")
    draw_axis(drawing, axis, 24, 234, plain)
    for share in (0, 0.5, 1):
        drawing.line(40, up.at(share), _WIDTH - 12, up.at(share), "grid")
        drawing.text(34, up.at(share), f"{share:.0%}", "soft", "end")
    for curve in panel.curves:
        at = order.index(curve.name)
        points = [f"M{axis.at(curve.times[0]):.1f} 234"]
        points += [f"H{axis.at(x):.1f}V{up.at(y):.1f}" for x, y in zip(curve.times, curve.shares, strict=True)]
        drawing.add("path", d="".join(points), class_=f"curve curve-{at % 7} dash-{at % 6}", title=curve.name)
    return drawing


def curve_key(at: int, name: str) -> Markup:
    """The key of a platform's curve, by its place in the order of the curves."""
    return Markup(
        '<span class="key"><svg class="swatch" width="30" height="6" aria-hidden="true">'
        '<path class="curve curve-{} dash-{}" d="M0 3h30"></path></svg> {}</span> '
    ).format(at % 7, at % 6, name)


def trade_off(report: Report) -> list[tuple[str, Drawing]]:
    """Cost against exposure, a drawing a dimension: its title, and it; empty where no surface was read."""
    with_calls = [answer for answer in report.answers if answer.calls is not None and answer.baseline_calls]
    drawings = []
    for dimension in Dimension:
        points = [
            (answer.platform, standing.felt, standing.figure, standing.state, answer.calls or 0)
            for answer in with_calls
            for standing in answer.dimensions
            if standing.dimension is dimension and standing.figure
        ]
        if points:
            most = max(answer.baseline_calls or 0 for answer in with_calls)
            drawings.append((DIMENSIONS[dimension], _plane(DIMENSIONS[dimension], points, most, report.baseline)))
    return drawings


def _plane(name: str, points: Sequence[tuple[str, float, str, AnswerState, int]], most: int, baseline: str) -> Drawing:
    """Platforms by cost (right is worse) and by calls (up is more); each with its name and figure."""
    height = 330.0
    points_in_words = [f"{platform} {figure}, {calls} calls" for platform, _, figure, _, calls in points]
    drawing = Drawing(760.0, height, captions.plane_label(name, EXPOSURE, points_in_words))
    ends = [_squeezed(felt) for _, felt, *_ in points]
    across = axis_over([0.0, _NEAR, *ends], 60, 560)  # what is alike stays beside the baseline
    up = Axis(0, most * 1.06, height - 34, 18)
    for tick in up.ticks(5):
        drawing.line(60, up.at(tick), 748, up.at(tick), "grid")
        drawing.text(54, up.at(tick), plain(tick), "soft", "end")
    drawing.line(across.at(0), 18, across.at(0), height - 34, "zero")
    drawing.text(across.at(0), height - 22, f"as {baseline}", "soft", "middle")
    drawing.text(748, height - 8, f"{name}: right is worse", "soft", "end")
    drawing.text(60, 8, captions.CALLS_AXIS, "soft")
    places = [(across.at(_squeezed(felt)), up.at(calls)) for _, felt, _, _, calls in points]
    used: list[_Box] = [(x - 7, x + 7, y) for x, y in places]
    for platform, felt, figure, state, calls in sorted(points, key=lambda point: (-point[4], point[1])):
        x, y = across.at(_squeezed(felt)), up.at(calls)
        kind = STATE_SYMBOLS.get(state, "inconclusive")
        drawing.add(
            "path", d=SYMBOLS[kind](x, y), class_=f"symbol {kind}", title=f"{platform}: {figure}, {calls} calls"
        )
        label = f"{platform} {figure}"
        at = _free(used, x + 11, x + 11 + LETTER * len(label), y)
        if abs(at - y) > 6:
            drawing.line(x + 5, y, x + 10, at, "grid")
        drawing.text(x + 11, at, label)
    return drawing


def _squeezed(felt: float) -> float:
    """Near differences apart, far ones together: the root, with its sign."""
    return math.copysign(math.sqrt(abs(felt)), felt)


_Box = tuple[float, float, float]  # left and right end, and the middle's height


def _free(used: list[_Box], left: float, right: float, y: float) -> float:
    """A height for a label near ``y`` where nothing stands yet; it is used then."""
    for shift in (shift * side for shift in range(0, 300, 5) for side in (1, -1)):
        place = y + shift
        if 10 < place < 310 and all(
            abs(place - other) >= 13 or right < begin or left > end for begin, end, other in used
        ):
            used.append((left, right, place))
            return place
    return y


def drawn(figure: MetricFigure | FloorFigure | StartFigure) -> Markup | Drawing:
    """The figure as HTML."""
    match figure:
        case MetricFigure():
            return metric(figure)
        case FloorFigure():
            return floor(figure)
        case StartFigure():
            return start(figure)
