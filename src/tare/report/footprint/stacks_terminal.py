"""Samples of stacks in a terminal: where the CPUs were, by workload and platform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tare.clean import clean
from tare.footprint.model import IDLE, SAMPLES_A_SECOND, Phase, Scope
from tare.report.footprint import words
from tare.report.footprint.model import StacksReport

#: Names of one row.
_SHOWN = 4


def render(rows: Sequence[StacksReport]) -> Iterator[RenderableType]:
    """A table a workload, the starts, and the idle host; everybody's only where instances were not told apart."""
    own = {(one.platform, one.phase, one.workload) for one in rows if one.scope is Scope.INSTANCE}
    shown = [one for one in rows if one.scope is Scope.INSTANCE or (one.platform, one.phase, one.workload) not in own]
    groups: dict[str, list[StacksReport]] = {}
    for one in shown:
        groups.setdefault(one.workload or ("the start" if one.phase is Phase.START else "the idle host"), []).append(
            one
        )
    for title, found in groups.items():
        yield Text()
        yield Text(f"Where the CPUs were: {clean(title)}", style="bold")
        yield _table(found)
        for one in found:
            if one.kernel_percent:
                yield Text.assemble(f"  {_name(one)} ", (_names(one), "dim"))
    yield Text()
    yield Text(_legend(), style="dim")


def _table(rows: Sequence[StacksReport]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("platform", no_wrap=True)
    guests = any(one.guest_percent for one in rows)
    for name in ("samples", "lost", "seconds", "CPUs busy", "kernel", "user", *(["guest"] if guests else [])):
        table.add_column(name, justify="right", no_wrap=True)
    for one in rows:
        table.add_row(
            _name(one),
            words.count(one.samples),
            words.count(one.lost),
            f"{one.seconds:,.1f}",
            f"{one.cpus:.2f}",
            words.part(one.kernel_percent),
            words.part(one.user_percent),
            *([words.part(one.guest_percent)] if guests else []),
        )
    return table


def _name(one: StacksReport) -> str:
    if one.platform == IDLE:
        return "idle host"
    return f"{clean(one.platform)} (everybody)" if one.scope is Scope.HOST else clean(one.platform)


def _names(one: StacksReport) -> str:
    entered, own = words.shares(one.entries, _SHOWN), words.shares(one.own_time, _SHOWN)
    return clean(f"entered the kernel for {entered}; its functions by own time: {own}")


def _legend() -> str:
    return (
        f"Samples of the processes in the instance's control groups, {SAMPLES_A_SECOND} a second and CPU; percentages"
        " are of the samples. Lost: ticks of the clock that did not come, everybody's. Flame graphs: tare report FILE"
        " --html; folded stacks: tare export FILE --table stacks --format folded."
    )
