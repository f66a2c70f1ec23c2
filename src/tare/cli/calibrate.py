"""tare calibrate: does the instrument tell the truth on this machine, and what can it resolve?"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import typer
from rich.console import Console

from tare.analysis.calibration import injected, longer_trust, trust
from tare.analysis.words import span
from tare.campaign import calibrate as campaigns
from tare.cli.report import to_read
from tare.errors import UsageError
from tare.host import facts, load, state
from tare.model import Trial
from tare.report.calibration import (
    LATEST_CALIBRATION,
    LONGER_S,
    CalibrationReport,
    ConditionReport,
    InjectedReport,
    condition,
    injection,
    render,
)
from tare.store import Store
from tare.store.durations import whole_duration

#: Busy processes for each CPU in the noisy half.
NEIGHBOURS = 2


class Load(StrEnum):
    """Under which load the baseline is compared with itself."""

    QUIET = "quiet"
    LOADED = "loaded"
    BOTH = "both"


def calibrate(
    comparisons: int = typer.Option(200, "--comparisons", help="How often the baseline is compared with itself."),
    under: Load = typer.Option(
        Load.BOTH, "--load", help=f"quiet: as the machine is now. loaded: with {NEIGHBOURS} busy processes a CPU."
    ),
    platform: list[str] = typer.Option(
        ["docker", "gvisor"], "-p", "--platform", help="Platforms that get added work, beside native; may be repeated."
    ),
    blocks: int = typer.Option(campaigns.ADDED_BLOCKS, "--blocks", help="Blocks with added work; 0: none of that."),
    output: Path | None = typer.Option(
        None, "-o", "--output", help="Folder for the files. Those there are taken, unfinished ones go on."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.calibration/1)."),
) -> None:
    """Compare what does not differ, and find work that was added: the instrument's own error on this machine.

    Prints how often it cries wolf, how often its intervals hold the truth, what it finds of added work, and the
    smallest effect that it resolves in 1, 5 and 30 minutes. `tare run` tells these from then on.

    Examples: [cyan]tare calibrate[/] (an hour or two),
    [cyan]tare calibrate --load quiet --comparisons 30 --blocks 0[/],
    [cyan]tare calibrate -o FOLDER[/] (an earlier one's: what it has not is measured, also after a kill)
    """
    if comparisons < 1:
        raise UsageError(f"{comparisons} comparisons tell nothing", fix="give --comparisons 200")
    folder = output or state.home() / "calibration" / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True, highlight=False)
    conditions = [one for kind in _kinds(under) for one in _same(folder, kind, comparisons, console)]
    found = _added(folder, platform, blocks, console) if blocks else []
    host = facts.gather()
    report = CalibrationReport(
        machine=host.machine, at=time.time(), workload=campaigns.WORKLOAD, conditions=conditions, injected=found
    )
    text = report.model_dump_json(indent=2, by_alias=True)
    (state.home() / LATEST_CALIBRATION).write_text(text)
    if as_json:
        typer.echo(text)
        return
    out = to_read()
    out.print(render(report))
    out.print(f"campaigns: {folder}", markup=False, soft_wrap=True)


def _kinds(under: Load) -> tuple[Load, ...]:
    return (Load.QUIET, Load.LOADED) if under is Load.BOTH else (under,)


def _same(folder: Path, kind: Load, comparisons: int, console: Console) -> Iterator[ConditionReport]:
    file = folder / f"{kind}.tare"
    lines = Lines(console, campaigns.blocks_for(comparisons))
    with load.busy(NEIGHBOURS) if kind is Load.LOADED else contextlib.nullcontext():
        if file.exists():
            console.print(f"{kind}: {file} is there", markup=False)
            campaigns.go_on(file, lines)
        else:
            console.print(f"{kind}: the baseline against itself, {comparisons} times", markup=False)
            campaigns.same_with_same(file, comparisons, lines)
    with Store.read(file) as store:
        trials = store.trials()
        # Time between blocks counts too: what a user waits for is all of it.
        each = whole_duration(trials) / max(1, trials["block"].n_unique())
        longer = longer_trust(store.record, store.samples(), each, LONGER_S)
        for one in trust(store.record, store.samples(), each, campaigns.BLOCKS):
            yield condition(kind.value, one, longer)


def _added(folder: Path, platforms: Sequence[str], blocks: int, console: Console) -> list[InjectedReport]:
    file = folder / "added.tare"
    if file.exists():
        console.print(f"added work: taken from {file}", markup=False)
    else:
        console.print(f"added work: native, {', '.join(platforms)}, {blocks} blocks", markup=False)
        campaigns.with_added_work(file, platforms, blocks, Lines(console, blocks))
    added = campaigns.added(platforms)
    with Store.read(file) as store:
        return [injection(one) for one in injected(store.record, store.samples(), added)]


class Lines:
    """Progress in lines, at most one in twenty seconds: a calibration must not draw while it measures."""

    EVERY_S = 20.0

    def __init__(self, console: Console, blocks: int) -> None:
        self._console = console
        self._blocks = blocks
        self._told = time.monotonic()

    def block(self, number: int, spent_s: float, left_s: float | None) -> None:  # noqa: ARG002 (others show it)
        """A block begins."""
        now = time.monotonic()
        if now - self._told >= self.EVERY_S and left_s is not None:
            self._told = now
            self._console.print(f"  block {number} of {self._blocks}, about {span(left_s)} left", markup=False)

    def doing(self, what: str) -> None:
        """Something begins: too much to tell."""

    def trial(self, trial: Trial) -> None:
        """A trial is in the store."""

    def fault(self, line: str) -> None:
        """A part failed by a fault in somebody's code, and the campaign goes on."""
        self._console.print(f"  {line}", markup=False)
