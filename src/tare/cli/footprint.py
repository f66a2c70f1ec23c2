"""tare footprint: what of the host's kernel platforms reach while they start and work."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tare.analysis.words import span
from tare.campaign.conduct import DEFAULT_MEMORY
from tare.campaign.plan import parse_time
from tare.cli.progress import Drawn
from tare.cli.run import parse_cpus
from tare.errors import UsageError
from tare.footprint import conduct, lab, summary
from tare.footprint.conduct import Order
from tare.footprint.lab import Brought
from tare.footprint.model import EMPTY, IDLE, SCHEMA, Footprint, Level
from tare.footprint.summary import Pool, Row
from tare.footprint.walk import Missed, Skipped
from tare.store.record import LeftOut

_EXAMPLES = """Examples:

[cyan]tare footprint[/]                                        the usual platforms, the four workloads of Anjali 2020

[cyan]tare footprint -p docker -p gvisor -w sysbench-cpu --repeats 5[/]

[cyan]tare footprint -p gvisor -o night.tare[/]                into a campaign's file that is there, beside its figures

[cyan]tare footprint --level functions -p runc -p docker -p gvisor -o kernel.tare[/]    in a lab, brought back
"""
_WORDS = {Level.SYSCALLS: "system calls", Level.FUNCTIONS: "kernel functions", Level.LINES: "kernel lines"}
#: Names in one line of the table's foot.
_SHOWN = 40


def footprint(
    platform: list[str] = typer.Option(
        [], "-p", "--platform", help="A platform by name; may be given again. native always takes part."
    ),
    workload: list[str] = typer.Option(
        [],
        "-w",
        "--workload",
        help=f"A workload or family; may be given again. Default: {', '.join(conduct.WORKLOADS)}.",
    ),
    level: Level = typer.Option(
        Level.SYSCALLS, "--level", help="What is counted. functions and lines: in a lab that is booted."
    ),
    repeats: int = typer.Option(3, "--repeats", help="How often everything is counted anew, in random order."),
    idle: str = typer.Option(
        "10s", "--idle", help="How long the idle host is looked at in each repeat; 0: not at all."
    ),
    seed: int | None = typer.Option(None, "--seed", help="Seed of all random orders. Default: drawn."),
    cpus: str | None = typer.Option(None, "--cpus", help="Host CPUs for the instances: 1 or 2,3. Default: the last."),
    memory: int = typer.Option(DEFAULT_MEMORY >> 20, "--memory", help="Memory limit of an instance in MiB."),
    subnet: str | None = typer.Option(None, "--subnet", help="Subnet of tare's bridge. Default: a free one."),
    output: Path | None = typer.Option(
        None, "-o", "--output", help="Campaign file: a new one, or one that gets the footprints too."
    ),
    here: bool = typer.Option(False, "--here", help="Count functions on this host itself, and not in a lab."),
    program: list[Path] = typer.Option(
        [], "--file", help="A program of this host, to be on PATH in the lab (firecracker); may be given again."
    ),
    as_json: bool = typer.Option(False, "--json", help=f"Print the footprints as JSON (schema {SCHEMA})."),
) -> None:
    """Count what platforms make the host's kernel do: in the start, and while a workload runs.

    Counted are everybody's work and that of the processes in the instance's control groups, which needs nothing
    subtracted. Nothing of the host is changed, and nothing stays enabled, however tare ends.
    """
    order = Order(
        platforms=platform,
        workloads=workload,
        level=level,
        repeats=repeats,
        idle_s=parse_time(idle),
        seed=seed,
        cpus=parse_cpus(cpus),
        memory_bytes=memory * 2**20,
        subnet=subnet,
    )
    file = output or Path(time.strftime("tare-footprint-%Y%m%d-%H%M%S.tare"))
    with _Progress(Console(stderr=True, highlight=False)) as progress:
        _count(order, file, progress, here=here, programs=program)
    if as_json:
        typer.echo(json.dumps(_answer(progress), indent=2))
    else:
        _print_all(progress, level, file)


footprint.__doc__ = f"{footprint.__doc__}\n\n{_EXAMPLES}"


def _count(order: Order, file: Path, progress: _Progress, *, here: bool, programs: Sequence[Path]) -> None:
    if order.level in lab.LEVELS and not (here or lab.inside()):
        progress.brought(lab.count(order, file, progress.doing, programs))
        return
    if programs:
        raise UsageError("--file brings a program into a lab, and none is booted", fix="leave --file out")
    conduct.begin(order, file, progress, progress.told)


class _Progress(Drawn):
    """What runs now and how long is left, on a terminal; a line for each thing elsewhere. Keeps what was brought."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.footprints: list[Footprint] = []
        self.missed: list[Missed] = []
        self.left_out: list[LeftOut] = []
        self.skipped: list[Skipped] = []
        self.warnings: list[str] = []  # of a lab
        self._doing = "setting up"
        self._began: float | None = None  # when the first thing was counted
        self._done, self._of = 0, 0

    @property
    def without(self) -> list[str]:
        """A line for each thing that has no footprint."""
        out = (f"{one.platform} is left out: {one.reason}" for one in self.left_out)
        return [*map(str, self.skipped), *out, *map(str, self.missed), *self.warnings]

    def doing(self, what: str) -> None:
        """Something begins."""
        self._doing = what
        if not self._console.is_terminal:
            self._console.print(f"{what}{self._left()}", markup=False, soft_wrap=True)

    def step(self, done: int, of: int) -> None:
        """So many windows of so many are over."""
        self._began = self._began or time.monotonic()
        self._done, self._of = done, of

    def told(self, one: Footprint | Missed | LeftOut | Skipped) -> None:
        """Something is in the file, or will not be."""
        match one:
            case Footprint():
                self.footprints.append(one)
            case Missed():
                self.missed.append(one)
            case LeftOut():
                self.left_out.append(one)
            case Skipped():
                self.skipped.append(one)

    def brought(self, one: Brought) -> None:
        """A lab has counted."""
        self.footprints += one.footprints
        self.warnings += one.warnings

    def _left(self) -> str:
        if self._began is None or self._done < 2:  # the clock runs since the first was over
            return ""
        each = (time.monotonic() - self._began) / (self._done - 1)
        return f" ({self._done} of {self._of} done, about {span(each * (self._of - self._done))} left)"

    def _render(self) -> Text:
        failed = f", {len(self.missed)} missed" if self.missed else ""
        return Text.assemble(("tare footprint ", "bold"), f"{self._doing}{self._left()}{failed}")


def _print_all(progress: _Progress, level: Level, file: Path) -> None:
    console = Console(highlight=False)
    names: list[str | None] = [*summary.workloads(progress.footprints)]
    for name in names or [None]:
        _print(console, name, summary.rows(progress.footprints, name), level)
    for line in progress.without:
        console.print(line, markup=False, soft_wrap=True)
    console.print(f"in {file}", markup=False, soft_wrap=True)


def _print(console: Console, workload: str | None, rows: Sequence[Row], level: Level) -> None:
    table = Table(box=None, pad_edge=False, title=workload or "no workload", title_justify="left", title_style="bold")
    table.add_column(_WORDS[level])
    for name in ("in the start", "in the work", "hits a second", "everybody's", "hits a second", "lost"):
        table.add_column(name, justify="right")
    for row in rows:
        label = "idle host" if row.platform == IDLE else row.platform
        lost = sum(pool.lost for pool in (row.start, row.everybody) if pool)
        table.add_row(escape(label), *_pools(row), f"{lost:,}")
    console.print(table)
    for row in rows:
        if row.only:
            more = f" and {len(row.only) - _SHOWN} more" if len(row.only) > _SHOWN else ""
            console.print(f"only {row.platform}: {', '.join(row.only[:_SHOWN])}{more}", markup=False)
    console.print()


def _pools(row: Row) -> list[str]:
    def distinct(pool: Pool | None) -> str:
        return f"{len(pool.names):,}" if pool else ""

    def rate(pool: Pool | None) -> str:
        return f"{pool.rate:,.0f}" if pool else ""

    # An empty reading is of no time: it has no rate.
    everybodys = "" if row.platform == EMPTY else rate(row.everybody)
    return [distinct(row.start), distinct(row.steady), rate(row.steady), distinct(row.everybody), everybodys]


def _answer(progress: _Progress) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "footprints": [one.model_dump(mode="json") for one in progress.footprints],
        "missed": [
            {"platform": one.platform, "workload": one.workload, "repeat": one.repeat, "reason": one.reason}
            for one in progress.missed
        ],
        "skipped": [{"workload": one.workload, "reason": one.reason} for one in progress.skipped],
        "left_out": [one.model_dump(mode="json") for one in progress.left_out],
        "warnings": progress.warnings,
    }
