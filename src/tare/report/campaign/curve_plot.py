"""Curves over a load, as drawings: a line a platform through its means, in a band of 95 %, with marks on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tare.report.parts.svg import Axis, Drawing, axis_over, plain

#: As wide as a phone, so that its text is still read there.
_WIDTH, _HEIGHT, _LEFT = 430.0, 270.0, 52.0
_TOP, _BOTTOM = 24.0, _HEIGHT - 34


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """The mean over blocks at a load; ``low``, ``high``: its 95 % interval, equal to it where there is none."""

    load: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A load that a curve shows, such as its knee; ``low``, ``high``: its 95 % interval, equal to it where none."""

    kind: str  # one of `SYMBOLS`
    load: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Curves:
    """One quantity over a load, by platform in the report's order. ``limit``: of the quantity, drawn as a line."""

    label: str
    unit: str  # of the load
    #: without platforms that have no point
    platforms: Mapping[str, Sequence[PlotPoint]]
    marks: Mapping[str, Sequence[Mark]] = field(default_factory=dict)
    limit: float | None = None
    log: bool = False  # whether the quantity's axis is logarithmic too; it is above zero then


#: Paths around (0, 0), by the kind of a mark.
SYMBOLS: Mapping[str, str] = {"knee": "M0-6L6 0L0 6L-6 0z", "saturated": "M0-6L6 5H-6z"}


def draw(curves: Curves, order: Sequence[str]) -> Drawing:
    """The curves; a platform's colour and dashes are those of its place in ``order``."""
    drawing = Drawing(_WIDTH, _HEIGHT, _spoken(curves))
    drawing.text(0, 10, curves.label, "soft")
    everything = [point for points in curves.platforms.values() for point in points]
    loads = sorted({point.load for point in everything})
    across = _across(loads)
    # On a logarithmic axis the lower end of a wide interval may be nowhere.
    ends = [end for p in everything for end in (max(p.mean / 2 if curves.log else 0.0, p.low), p.high)]
    limits = [] if curves.limit is None else [curves.limit]
    up = axis_over([*ends, *limits], _BOTTOM, _TOP, log=curves.log, zero=True)
    for tick in up.ticks(5):
        drawing.line(_LEFT, up.at(tick), _WIDTH - 12, up.at(tick), "grid")
        drawing.text(_LEFT - 6, up.at(tick), plain(tick), "soft", "end")
    beside = float("-inf")
    for load in loads:
        x = across.at(load)
        drawing.line(x, _TOP, x, _BOTTOM, "grid")
        if x - beside > 20:
            drawing.text(x, _HEIGHT - 22, plain(load), "soft", "middle")
            beside = x
    drawing.text(_WIDTH - 12, _HEIGHT - 8, curves.unit, "soft", "end")
    if curves.limit is not None:
        drawing.line(_LEFT, up.at(curves.limit), _WIDTH - 12, up.at(curves.limit), "limit")
        drawing.text(_LEFT + 4, up.at(curves.limit) - 8, "limit", "soft")
    for name, points in curves.platforms.items():
        at = order.index(name)
        if any(point.low < point.high for point in points):
            there = [f"{across.at(point.load):.1f} {up.at(point.high):.1f}" for point in points]
            back = [f"{across.at(point.load):.1f} {up.at(max(up.low, point.low)):.1f}" for point in reversed(points)]
            drawing.add("path", d=f"M{'L'.join([*there, *back])}z", class_=f"span-of curve-{at % 7}")
        line = "L".join(f"{across.at(point.load):.1f} {up.at(point.mean):.1f}" for point in points)
        drawing.add("path", d=f"M{line}", class_=f"curve curve-{at % 7} dash-{at % 6}", title=_means(name, points))
    for name, marks in curves.marks.items():
        for mark in marks:
            _mark(drawing, across, up, curves.platforms[name], mark, name, order.index(name) % 7)
    return drawing


def _mark(
    drawing: Drawing, across: Axis, up: Axis, points: Sequence[PlotPoint], mark: Mark, name: str, colour: int
) -> None:
    """A sign on the curve at the load, with its interval as a line."""
    # On the line, which is straight between two points of the drawing.
    y = float(np.interp(np.log(mark.load), np.log([p.load for p in points]), [up.at(p.mean) for p in points]))
    x = across.at(mark.load)
    if mark.low < mark.high:
        drawing.line(across.at(mark.low), y, across.at(mark.high), y, f"curve curve-{colour} ends")
        ends = f" ({mark.low:g} to {mark.high:g})"
    else:
        ends = ""
    drawing.add(
        "path",
        d=SYMBOLS[mark.kind],
        transform=f"translate({x:.1f} {y:.1f})",
        class_=f"sign curve-{colour}",
        title=f"{name}, {mark.kind}: {mark.load:g}{ends}",
    )


def _across(loads: Sequence[float]) -> Axis:
    if not loads:
        return Axis(1, 2, _LEFT, _WIDTH - 12)
    return Axis(loads[0] * 0.9, loads[-1] * 1.1, _LEFT, _WIDTH - 12, log=True)


def _spoken(curves: Curves) -> str:
    """All that the drawing shows, for who does not see it."""
    lines = [_means(name, points) for name, points in curves.platforms.items()]
    marks = [
        f"{name}, {mark.kind}: {mark.load:g}"
        for name, platform_marks in curves.marks.items()
        for mark in platform_marks
    ]
    return f"{curves.label}, by {curves.unit}. {'; '.join([*lines, *marks])}"


def _means(name: str, points: Sequence[PlotPoint]) -> str:
    return f"{name}: {', '.join(f'{point.mean:,.5g} at {point.load:g}' for point in points)}"
