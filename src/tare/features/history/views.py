"""`tare history` in a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tare.features.diff.analysis import FigureOutcome
from tare.features.diff.words import MARKS
from tare.features.history import words
from tare.features.history.analysis import History, Series
from tare.safe_text import clean

SCHEMA = "tare.history/1"
STYLES: Mapping[FigureOutcome, str] = {
    FigureOutcome.REGRESSION: "bold red",
    FigureOutcome.OPEN: "yellow",
    FigureOutcome.FINE: "green",
}
#: Left-out campaigns that are named; of more there is a count.
_NAMED = 5
_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 24


def render(history: History, *, every: bool = False) -> Group:
    """The figures that changed or are open, and the outcome last. ``every``: all figures."""
    shown = [series for series in history.series if every or series.steps or series.outcome is not FigureOutcome.FINE]
    rest = len(history.series) - len(shown)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for head in ("", "platform", "figure", "campaigns", "from first to last", "last", "changes"):
        table.add_column(head, justify="right" if head in {"campaigns", "last"} else "left", overflow="fold")
    for series in shown:
        last = words.value(history, series, series.points[-1].value)
        cells = (
            MARKS[series.outcome],
            series.platform,
            f"{series.workload} {series.metric}",
            str(len(series.points)),
            sparkline([point.value for point in series.points]),
            last,
            "\n".join(words.steps(history, series)),
        )
        table.add_row(*(Text(clean(cell)) for cell in cells), style=STYLES[series.outcome])
    parts: list[RenderableType] = [Text(clean(words.heading(history)), style="bold")]
    parts += [table] if shown else []
    parts += [Text(words.unchanged(rest), style="dim")] if rest else []
    parts += [Text(clean(f"Left out: {words.left_out(entry)}"), style="dim") for entry in history.left_out[:_NAMED]]
    if (more := len(history.left_out) - _NAMED) > 0:
        parts.append(Text(words.more_left_out(more), style="dim"))
    outcome = Text(clean(words.conclusion(history)), style=STYLES[history.outcome])
    return Group(*parts, Text(words.METHOD, style="dim"), outcome)


def sparkline(values: Sequence[float]) -> str:
    """The values as bars of one line, the newest `_WIDTH` of them."""
    shown = values[-_WIDTH:]
    low, high = min(shown), max(shown)
    if not high > low:
        return _BARS[0] * len(shown)
    return "".join(_BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] for value in shown)


def to_json(history: History) -> str:
    """The history as it is, with ``schema`` and the outcome of the whole; shares are fractions."""
    return json.dumps({"schema": SCHEMA, "outcome": history.outcome, **asdict(history)}, indent=2, ensure_ascii=False)


def named(series: Series) -> str:
    """A series in words."""
    return f"{series.platform}: {series.workload} {series.metric}"
