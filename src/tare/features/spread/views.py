"""The sources of a campaign's spread, and the changes of its figures, in a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tare.analysis.quality.change_points import ChangePoint
from tare.features.spread.analysis import Steadiness, Trajectory
from tare.features.spread.words import SPREAD, WITHIN_TRIALS
from tare.report.sentences.numbers import EMPTY, percent, quantity
from tare.report.sentences.refusal_words import refusal_text
from tare.safe_text import clean

SCHEMA = "tare.spread/1"


def to_data(spreads: Sequence[Steadiness], trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """The data of ``tare spread --json``; variances are of natural logarithms of ratios to the baseline."""
    results = [asdict(spread) | {"reason": spread.reason and refusal_text(spread.reason)} for spread in spreads]
    rows = {"results": results, "trajectories": [asdict(trajectory) for trajectory in trajectories]}
    return {"schema": SCHEMA, **rows}


def render(spreads: Sequence[Steadiness], trajectories: Sequence[Trajectory], baseline: str) -> Group:
    """A table per metric, and one of trajectories where there are any."""
    parts: list[RenderableType] = []
    for key in dict.fromkeys((spread.workload, spread.metric) for spread in spreads):
        rows = [spread for spread in spreads if (spread.workload, spread.metric) == key]
        parts += [Text(f"{clean(key[0])}: {clean(key[1])}", style="bold"), _spreads(rows, baseline), Text()]
    if trajectories:
        parts += [Text(WITHIN_TRIALS, style="bold"), _lines(trajectories)]
    parts.append(Text(SPREAD, "dim"))
    return Group(*parts)


def _spreads(rows: Sequence[Steadiness], baseline: str) -> Table:
    heads = ("blocks", "spread", "of starts", "of rounds", "twice the rounds", "best rounds", "changes")
    table = _table("platform", *heads)
    for row in rows:
        name = f"{clean(row.platform)}, twice" if row.platform == baseline else clean(row.platform)
        if row.parts is None:
            middle = [EMPTY] * 4
        else:
            middle = [
                percent(row.parts.between**0.5),
                percent(row.parts.within**0.5),
                _times(row.twice_rounds),
                EMPTY if row.best_rounds is None else f"{row.best_rounds}",
            ]
        table.add_row(
            name,
            f"{row.n_blocks}",
            EMPTY if row.sd is None else percent(row.sd),
            *middle,
            _changes(row.changes, "block"),
        )
    if all(row.parts is None for row in rows) and rows[0].reason:
        table.caption = f"no parts: {refusal_text(rows[0].reason)}"
        table.caption_justify = "left"
    return table


def _lines(trajectories: Sequence[Trajectory]) -> Table:
    table = _table("workload", "metric", "platform", "iterations", "first", "last", "changes")
    for trajectory in trajectories:
        ends = (quantity(trajectory.first, trajectory.unit), quantity(trajectory.last, trajectory.unit))
        shown = _changes(trajectory.changes, "iteration", trajectory.unit)
        table.add_row(
            clean(trajectory.workload),
            clean(trajectory.metric),
            clean(trajectory.platform),
            f"{trajectory.n}",
            *ends,
            shown,
        )
    return table


def _changes(changes: Sequence[ChangePoint] | None, position: str, unit: str | None = None) -> str:
    if changes is None:
        return EMPTY
    if not changes:
        return "none"
    shown = []
    for change in changes[:3]:
        by = percent(change.after - change.before) if unit is None else quantity(change.after, unit)
        shown.append(f"{position} {change.at + 1}: {'by' if unit is None else 'to'} {by}")
    more = len(changes) - len(shown)
    return "; ".join(shown) + (f"; {more} more" if more else "")


def _times(value: float | None) -> str:
    return EMPTY if value is None else f"x {value:.2f}"


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for at, head in enumerate(heads):
        table.add_column(head, justify="left" if at == 0 or head in {"metric", "platform", "changes"} else "right")
    return table
