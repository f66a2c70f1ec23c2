"""Counted instructions in a terminal: a table of the starts, one of the units of work, and who executed them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tare.analysis.instructions import REST
from tare.features.kernel.models.footprint_models import AmountReport, InstructionsReport
from tare.features.kernel.words import footprint_words as words
from tare.footprint_model import Phase
from tare.report.sentences.numbers import EMPTY, scaled
from tare.safe_text import clean

#: Most commands of one row.
_SHOWN = 5


def render(rows: Sequence[InstructionsReport]) -> Iterator[RenderableType]:
    """The starts with their parts, the costs of units, the other work, and in words what all this is not."""
    starts = [row for row in rows if row.phase is Phase.START]
    units = [row for row in rows if row.unit is not None]
    work = [row for row in rows if row.phase is Phase.STEADY and not row.in_pieces]
    if starts:
        yield from _parts("Instructions of a start", starts)
    for workload in dict.fromkeys(row.workload for row in work):
        yield from _parts(f"Instructions of {clean(workload or '')}", [row for row in work if row.workload == workload])
    if units:
        yield Text()
        yield Text(words.UNITS, style="bold")
        yield _units(units)
    yield Text()
    yield Text(words.INSTRUCTIONS_TABLE, style="dim")
    yield Text(words.INSTRUCTIONS, style="dim")


def _parts(title: str, rows: Sequence[InstructionsReport]) -> Iterator[RenderableType]:
    yield Text()
    yield Text(title, style="bold")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("platform", no_wrap=True)
    for name in ("all", "user", "kernel", "instance's", "strings", "calls"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        medians = [part.median for part in (row.instance_user, row.instance_kernel) if part is not None]
        table.add_row(
            clean(row.platform),
            words.amount(row.total),
            _median(row.user),
            _median(row.kernel),
            scaled(sum(medians)) if medians else EMPTY,
            _median(row.repeated),
            _median(row.calls),
        )
    yield table
    for row in rows:
        named = ", ".join(f"{share.command} {words.amount(share.instructions)}" for share in row.commands[:_SHOWN])
        yield Text.assemble(f"  {clean(row.platform)} ", (clean(named), "dim"))
        code = ", ".join(
            f"{part.place}{'()' if part.side == 'kernel' else ''} {words.amount(part.instructions)}"
            for part in [part for part in row.code if part.place != REST][:_SHOWN]
        )
        if code:
            yield Text(f"    code: {clean(code)}", style="dim")
        if row.outside_guest is not None:
            yield Text(f"    {words.on_host_alone(row.outside_guest)}", style="dim")
        if row.caches:
            yield Text(f"    caches: {words.caches(row)}", style="dim")


def _units(rows: Sequence[InstructionsReport]) -> Table:
    workloads = list(dict.fromkeys(row.workload or "" for row in rows))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("platform", no_wrap=True)
    for workload in workloads:
        table.add_column(f"{clean(workload)}\nuser + kernel", justify="right", no_wrap=True)
    for platform in dict.fromkeys(row.platform for row in rows):
        by_workload = {row.workload: row for row in rows if row.platform == platform}
        table.add_row(
            clean(platform),
            *(_unit(by_workload[workload]) if workload in by_workload else "" for workload in workloads),
        )
    return table


def _unit(row: InstructionsReport) -> str:
    user, kernel = (0.0 if part is None else part.median for part in (row.unit_user, row.unit_kernel))
    return f"{user:,.0f} + {kernel:,.0f}"


def _median(value: AmountReport | None) -> str:
    return EMPTY if value is None else scaled(value.median)
