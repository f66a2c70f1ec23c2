"""Drawings of the page as SVG: escaped text, axes with round numbers, and classes that the page's style gives colours.

Made here and not by a library: a drawing is a few kilobytes, follows the theme, prints, and runs no script. Plotly's
script alone was nine tenths of a page, and pictures of matplotlib's have one theme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

#: Width of a letter of a drawing's text, in its units: a little more than the mean of a wide sans serif at 12 units.
LETTER = 7.3
#: The least and the greatest value that a logarithmic axis has.
_LOG_ENDS = (1e-300, 1e300)


@dataclass(slots=True)
class Drawing:
    """A picture of so many units; ``label`` says what it shows to who does not see it."""

    width: float
    height: float
    label: str
    _parts: list[Markup] = field(default_factory=list)

    def add(self, tag: str, content: str | Markup | None = None, title: str = "", **attributes: object) -> None:
        """An element; ``class_`` is its class, and an underscore stands for a hyphen. ``title``: shown on hovering."""
        named = (
            Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _value(value))
            for name, value in attributes.items()
            if value is not None
        )
        inside = Markup("<title>{}</title>").format(title) if title else Markup("")
        self._parts.append(
            Markup("<{0}{1}>{2}{3}</{0}>").format(Markup(tag), Markup("").join(named), inside, content or "")  # noqa: S704
        )

    def text(self, x: float, y: float, content: str, class_: str = "", anchor: str = "start") -> None:
        """A line of text; its middle is at ``y``."""
        self.add("text", content, x=x, y=y + 4, class_=class_ or None, text_anchor=anchor)

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        """A straight line."""
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)

    def __html__(self) -> str:
        head = Markup('<svg class="drawing" viewBox="0 0 {} {}" role="img" aria-label="{}" style="max-width: {}px">')
        start = head.format(_value(self.width), _value(self.height), self.label, round(self.width * 1.15))
        return start + Markup("\n").join(self._parts) + Markup("</svg>")


def _value(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from ``low`` to ``high`` between two places of a drawing."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a value; one beyond an end is there."""
        low, high, value = map(_log, self._ends(value)) if self.log else (self.low, self.high, value)
        share = 0.5 if high <= low else min(1.0, max(0.0, (value - low) / (high - low)))
        return self.start + share * (self.end - self.start)

    def _ends(self, value: float) -> tuple[float, float, float]:
        return self.low, self.high, min(self.high, max(self.low, value))

    def ticks(self, most: int = 6) -> list[float]:
        """Round values along it."""
        return _log_ticks(*map(_positive, (self.low, self.high))) if self.log else _ticks(self.low, self.high, most)


def _positive(value: float) -> float:
    """Return the value, or the nearest that a logarithmic axis has: a stranger's file may have any."""
    return min(_LOG_ENDS[1], max(_LOG_ENDS[0], value))


def _log(value: float) -> float:
    return math.log(_positive(value))


def axis_over(values: Sequence[float], start: float, end: float, *, log: bool = False, zero: bool = False) -> Axis:
    """An axis that holds all values with a little room; ``zero``: and begins at zero."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if log:
        room = 1.08 if high > low else 2.0
        return Axis(low / room, high * room, start, end, log=True)
    room = 0.04 * (high - low) or abs(high) * 0.1 or 1.0
    return Axis(0.0 if zero else low - room, high + room, start, end)


def draw_axis(drawing: Drawing, axis: Axis, top: float, bottom: float, shown: Callable[[float], str]) -> None:
    """Grid lines from ``top`` to ``bottom``, and the ticks' values below."""
    for tick in axis.ticks():
        x = axis.at(tick)
        drawing.line(x, top, x, bottom, "grid")
        drawing.text(x, bottom + 12, shown(tick), "soft", "middle")


def row_labels(drawing: Drawing, names: Sequence[str], top: float, row: float, widest: float = 170.0) -> float:
    """Names at the left of their rows; returns where the drawing may begin."""
    most = max((len(name) for name in names), default=0)
    room = min(widest, 16 + LETTER * most)  # a name of wide letters is wider than its number of them
    letters = int((room - 14) / LETTER)
    for at, name in enumerate(names):
        shown = name if len(name) <= letters else f"{name[: letters - 1]}…"
        drawing.text(room - 8, top + row * (at + 0.5), shown, "", "end")
    return room


def circle(x: float, y: float) -> str:
    """The path of a small circle around a place."""
    return f"M{x - 4.5:.1f} {y:.1f}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0"


def plain(value: float) -> str:
    """A tick's value with no more digits than it needs."""
    if value == 0:
        return "0"
    if abs(value) >= 10_000 or abs(value) < 0.001:
        size = math.floor(math.log10(abs(value)))
        scaled = value / 10 ** (3 * (size // 3))
        names = {-3: "n", -2: "µ", -1: "m", 1: "k", 2: "M", 3: "G", 4: "T"}
        return f"{scaled:g} {names.get(size // 3, f'e{3 * (size // 3)}')}" if size // 3 else f"{scaled:g}"
    return f"{value:,.4g}".replace("-", "\N{MINUS SIGN}") if abs(value) < 1000 else f"{value:,.0f}"


def _ticks(low: float, high: float, most: int) -> list[float]:
    if not high > low:
        return [low]
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough)
    first = math.ceil(low / step)
    return [round(step * at, 12) for at in range(first, math.floor(high / step) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if high / low < 1_000 else (1,)
    ticks = [factor * 10.0**decade for decade in decades for factor in factors]
    return [tick for tick in ticks if low <= tick <= high]


def join(*parts: Markup | Drawing) -> Markup:
    """Several pieces of HTML, one after the other."""
    return Markup("\n").join(escape(part) for part in parts)
