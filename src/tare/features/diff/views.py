"""`tare diff` in a terminal, as Markdown and as JSON; `tare.features.diff.gates` has what servers of builds read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tare.features.diff.analysis import Diff, FigureChange, FigureOutcome
from tare.features.diff.words import (
    MARKS,
    absent,
    alike,
    changed,
    conclusion,
    explained,
    figure,
    heading,
    intervals,
    unchanged,
    values,
    why,
)
from tare.report.parts.escaping import markdown
from tare.safe_text import clean

SCHEMA = "tare.diff/1"
_STYLES = {FigureOutcome.REGRESSION: "bold red", FigureOutcome.OPEN: "yellow", FigureOutcome.FINE: "green"}


def render(diff: Diff, *, every: bool = False) -> Group:
    """The table, what differs beside the figures, and the outcome last. ``every``: figures too that did not change."""
    shown = [change for change in diff.changes if every or _noteworthy(change)]
    rest = len(diff.changes) - len(shown)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for head in ("", "platform", "figure", "old", "new", "change", "why"):
        table.add_column(head, justify="right" if head in {"old", "new", "change"} else "left", overflow="fold")
    for change in shown:
        cells = (MARKS[change.outcome], change.platform, figure(change), *values(change), changed(change), why(change))
        table.add_row(*(Text(clean(cell)) for cell in cells), style=_STYLES[change.outcome])
    parts: list[RenderableType] = [Text(clean(heading(diff)), style="bold"), Text(clean(alike(diff)))]
    parts += [table] if shown else []
    parts += [Text(clean(why_so)) for why_so in map(explained, shown) if why_so]
    parts += [Text(unchanged(rest), style="dim")] if rest else []
    parts += [Text(clean(f"Not compared: {absent(entry)}"), style="dim") for entry in diff.absent]
    parts += [
        Text(intervals(diff), style="dim"),
        Text(clean(conclusion(diff)), style=_STYLES[diff.outcome]),
    ]
    return Group(*parts)


def _noteworthy(change: FigureChange) -> bool:
    """Return what regressed or is open, and what did change though by too little, or for the better."""
    span = change.interval
    return change.outcome is not FigureOutcome.FINE or (span is not None and not span.low <= 0 <= span.high)


def to_json(diff: Diff) -> str:
    """The diff as it is, with ``schema`` and the outcome of the whole; shares are fractions."""
    return json.dumps({"schema": SCHEMA, "outcome": diff.outcome, **asdict(diff)}, indent=2, ensure_ascii=False)


def to_markdown(diff: Diff) -> str:
    """For a pull request: the outcome, what regressed and what is open in a table, the rest folded."""
    fine = [change for change in diff.changes if change.outcome is FigureOutcome.FINE]
    others = [change for change in diff.changes if change.outcome is not FigureOutcome.FINE]
    lines = [f"**{MARKS[diff.outcome]} {markdown(conclusion(diff))}**", "", markdown(heading(diff)), ""]
    if others:
        lines += [*_rows(others), "", *(f"- {markdown(why_so)}" for why_so in map(explained, others) if why_so), ""]
    if fine:
        summary = f"{len(fine)} without a regression"
        lines += [f"<details><summary>{summary}</summary>", "", *_rows(fine), "", "</details>", ""]
    lines += [f"{markdown(alike(diff))}.", ""]
    if diff.absent:
        lines += [f"Not compared: {markdown('; '.join(map(absent, diff.absent)))}.", ""]
    return "\n".join([*lines, intervals(diff), ""])


def _rows(changes: list[FigureChange]) -> Iterator[str]:
    yield "| | platform | figure | old | new | change | why |"
    yield "| --- | --- | --- | ---: | ---: | ---: | --- |"
    for change in changes:
        cells = (MARKS[change.outcome], change.platform, figure(change), *values(change), changed(change), why(change))
        yield f"| {' | '.join(map(markdown, cells))} |"
