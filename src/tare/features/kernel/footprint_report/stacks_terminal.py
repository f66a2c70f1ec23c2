"""Sampled stacks in a terminal: where CPUs spent their time, by workload and platform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tare.features.kernel.models.footprint_models import StacksReport
from tare.features.kernel.words import footprint_words as words
from tare.footprint_model import IDLE, Phase, Scope
from tare.safe_text import clean

#: Most names of one row.
_SHOWN = 4


def render(rows: Sequence[StacksReport]) -> Iterator[RenderableType]:
    """Tables per workload, of starts, and of the idle host; the whole host only where instances were not separated."""
    separated = {(row.platform, row.phase, row.workload) for row in rows if row.scope is Scope.INSTANCE}
    shown = [
        row for row in rows if row.scope is Scope.INSTANCE or (row.platform, row.phase, row.workload) not in separated
    ]
    groups: dict[str, list[StacksReport]] = {}
    for row in shown:
        groups.setdefault(row.workload or ("the start" if row.phase is Phase.START else "the idle host"), []).append(
            row
        )
    for title, group in groups.items():
        yield Text()
        yield Text(f"Where the CPUs were: {clean(title)}", style="bold")
        yield _table(group)
        for row in group:
            if row.kernel_percent:
                yield Text.assemble(f"  {_name(row)} ", (_names(row), "dim"))
    yield Text()
    yield Text(words.STACKS, style="dim")


def _table(rows: Sequence[StacksReport]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("platform", no_wrap=True)
    guests = any(row.guest_percent for row in rows)
    for name in ("samples", "lost", "seconds", "CPUs busy", "kernel", "user", *(["guest"] if guests else [])):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            _name(row),
            words.count(row.samples),
            words.count(row.lost),
            f"{row.seconds:,.1f}",
            f"{row.cpus:.2f}",
            words.part(row.kernel_percent),
            words.part(row.user_percent),
            *([words.part(row.guest_percent)] if guests else []),
        )
    return table


def _name(row: StacksReport) -> str:
    if row.platform == IDLE:
        return "idle host"
    return f"{clean(row.platform)} (everybody)" if row.scope is Scope.HOST else clean(row.platform)


def _names(row: StacksReport) -> str:
    entered, own_time = words.shares(row.entries, _SHOWN), words.shares(row.own_time, _SHOWN)
    return clean(words.stack_names(entered, own_time))
