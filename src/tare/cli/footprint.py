"""tare footprint: what of the host's kernel platforms reach while they start and work."""

from __future__ import annotations

import json
import time
from pathlib import Path

import typer
from rich.console import Console, Group
from rich.text import Text

from tare.analysis.words import span
from tare.campaign.plan import parse_time
from tare.cli.instances import CPUS, MEMORY, PLATFORM, SEED, SUBNET, parse_cpus
from tare.cli.progress import Drawn
from tare.errors import UsageError
from tare.footprint import conduct, lab
from tare.footprint.lab import Brought
from tare.footprint.model import SCHEMA, Footprint, Level
from tare.footprint.order import Order
from tare.footprint.walk import Missed, Skipped
from tare.report.footprint_run import render
from tare.store.record import LeftOut

_EXAMPLES = """Examples:

[cyan]tare footprint[/]                                        the usual platforms, the four workloads of Anjali 2020

[cyan]tare footprint -p docker -p gvisor -w sysbench-cpu --repeats 5[/]

[cyan]tare footprint -p gvisor -o night.tare[/]                into a campaign's file that is there, beside its figures

[cyan]tare footprint --level functions -p runc -p docker -p gvisor -o kernel.tare[/]    in a lab, brought back

[cyan]tare footprint --level stacks -p docker -p gvisor -w call-read-1b -o F.tare[/], then
[cyan]tare report F.tare --html F.html[/]                      flame graphs of the host's kernel, by platform
"""


_WORKLOAD = typer.Option(
    [], "-w", "--workload", help=f"A workload or family; may be given again. Default: {", ".join(WORKLOADS)}."
)
_LEVEL = typer.Option(
    Level.SYSCALLS,
    "--level",
    help="What is counted. functions and lines: in a lab that is booted. stacks: for flame graphs, here.",
)
_IDLE = typer.Option("10s", "--idle", help="How long the idle host is looked at in each repeat; 0: not at all.")
_OUTPUT = typer.Option(None, "-o", "--output", help="Campaign file: a new one, or one that gets the footprints too.")
_PROGRAM = typer.Option(
    [], "--file", help="A program of this host, to be on PATH in the lab (firecracker); may be given again."
)


def footprint(
    platform: list[str] = PLATFORM,
    workload: list[str] = _WORKLOAD,
    level: Level = _LEVEL,
    repeats: int = typer.Option(3, "--repeats", help="How often everything is counted anew, in random order."),
    idle: str = _IDLE,
    seed: int | None = SEED,
    cpus: str | None = CPUS,
    memory: int = MEMORY,
    subnet: str | None = SUBNET,
    output: Path | None = _OUTPUT,
    here: bool = typer.Option(False, "--here", help="Count functions on this host itself, and not in a lab."),
    program: list[Path] = _PROGRAM,
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
        if level in lab.LEVELS and not (here or lab.inside()):
            progress.brought(lab.count(order, file, progress.doing, program))
        else:
            if program:
                raise UsageError("--file brings a program into a lab, and none is booted", fix="leave --file out")
            conduct.begin(order, file, progress, progress.told)
    if as_json:
        typer.echo(json.dumps(_answer(progress), indent=2))
        return
    console = Console(highlight=False)
    console.print(Group(*render(progress.footprints)))
    for line in progress.without:
        console.print(line, markup=False, soft_wrap=True)
    console.print(f"in {file}", markup=False, soft_wrap=True)


footprint.__doc__ = f"{footprint.__doc__}\n\n{_EXAMPLES}"


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
