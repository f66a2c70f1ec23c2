"""`tare fleet run`, `status`, `fetch` and `clean`: play, show a row a host, and end as the hosts did."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tare.cli.console import Console, emit
from tare.cli.exit_codes import ExitCode
from tare.cli.progress import Drawn
from tare.fleet import cluster, cluster_objects, run_fleet, written_out
from tare.fleet.cluster_objects import ClusterPlan
from tare.fleet.host_states import ENDED, HostRow, HostState
from tare.fleet.playing import Inventory
from tare.report.sentences.numbers import span

#: Rows of the live table: those that ended well come last, and are counted where there is no room.
_MOST_ROWS = 40
#: The states of hosts that have no file yet, and are under way.
_OPEN = frozenset({HostState.LOOKING, HostState.COPYING, HostState.STARTING, HostState.RUNNING, HostState.FETCHING})
_STYLES = {
    HostState.DONE: "green",
    HostState.FAILED: "red",
    HostState.LOST: "red",
    HostState.KILLED: "yellow",
    HostState.ABSENT: "dim",
}


class FleetDisplay(Drawn):
    """A row a host, drawn on a terminal; elsewhere a line for each change of a host's state."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._rows: Sequence[HostRow] = ()
        self._said: dict[str, tuple[HostState, str]] = {}
        self._doing = ""

    def doing(self, what: str) -> None:
        """An activity of this machine begins."""
        self._doing = what
        if not self._console.is_terminal:
            self._print(what)

    def rows(self, rows: Sequence[HostRow]) -> None:
        """Take the rows as they are now."""
        self._rows = rows
        if self._console.is_terminal:
            return
        for row in rows:
            if row.state is not HostState.WAITING and self._said.get(row.host) != (row.state, row.reason):
                self._said[row.host] = (row.state, row.reason)
                self._print(f"{row.host}: {row.state.value}{f': {row.reason}' if row.reason else ''}")

    def _render(self) -> RenderableType:
        return table(self._rows, self._doing)


def table(rows: Sequence[HostRow], doing: str = "") -> RenderableType:
    """The hosts: those that need a look first, then those at work."""
    drawn = Table(box=None, pad_edge=False, title=doing or None, title_justify="left", title_style="dim")
    for name in ("host", "state", "blocks", "left", ""):
        drawn.add_column(name, justify="right" if name in {"blocks", "left"} else "left", overflow="fold")
    ranked = sorted(
        rows, key=lambda row: (row.state is HostState.DONE, row.state not in {HostState.FAILED, HostState.LOST})
    )
    for row in ranked[:_MOST_ROWS]:
        drawn.add_row(
            Text(row.host),
            Text(row.state.value, _STYLES.get(row.state, "")),
            "" if row.blocks is None else str(row.blocks),
            "" if row.left_s is None or row.state in ENDED else span(row.left_s),
            Text("; ".join(filter(None, (row.reason or row.doing, row.note, _loaded(row))))),
        )
    if len(ranked) > _MOST_ROWS:
        drawn.add_row(f"and {len(ranked) - _MOST_ROWS} more", "", "", "", "")
    return drawn


def _loaded(row: HostRow) -> str:
    """Which host loads its servers, where that is another one."""
    return f"loaded by {row.client}" if row.client else ""


def run(folder: Path, inventory: Inventory, words: Sequence[str], *, forks: int, wait_s: int, as_json: bool) -> None:
    """Run a fleet, and end as its hosts did. Raises `TareError`."""
    order = run_fleet.begin(folder, inventory, words, wait_s)
    again = f"tare fleet run -o {shlex.quote(str(folder))}"
    console = Console(stderr=True)
    try:
        rows = _shown(console, lambda display: run_fleet.run(folder, order, display.rows, display.doing, forks=forks))
    except KeyboardInterrupt:
        console.print(f"the hosts continue by themselves; to follow and fetch: {again}", markup=False, soft_wrap=True)
        raise
    _end(rows, as_json=as_json, good={HostState.DONE}, again=again)


def run_on_cluster(folder: Path, plan: ClusterPlan | None, *, look_s: float, as_json: bool) -> None:
    """Run a fleet on the nodes of a Kubernetes cluster, and end as they did. Raises `TareError`."""
    meant = cluster.begin(folder, plan)
    again = f"tare fleet run --kubernetes -o {shlex.quote(str(folder))}"
    console = Console(stderr=True)
    try:
        rows = _shown(console, lambda display: cluster.run(folder, meant, display.rows, look_s=look_s))
    except KeyboardInterrupt:
        console.print(f"the Jobs continue by themselves; to follow and fetch: {again}", markup=False, soft_wrap=True)
        raise
    _end(
        rows,
        as_json=as_json,
        good={HostState.DONE},
        again=f"tare fleet clean --force {shlex.quote(str(folder))}; {again}",
    )


def manifest(plan: ClusterPlan) -> None:
    """Print the objects of a fleet. Raises `TareError`."""
    emit(cluster_objects.text(plan).rstrip("\n"))


def status(folder: Path, *, forks: int, as_json: bool) -> None:
    """Print how each host stands. Raises `TareError`."""
    _end(_asked(folder, forks), as_json=as_json, good={HostState.DONE}, open_=_OPEN)


def fetch(folder: Path, *, forks: int, as_json: bool) -> None:
    """Fetch what is complete. Raises `TareError`."""
    _end(_asked(folder, forks, fetched=True), as_json=as_json, good={HostState.DONE}, open_=_OPEN)


def _asked(folder: Path, forks: int, *, fetched: bool = False) -> list[HostRow]:
    """Ask the hosts of an inventory, or the nodes of a cluster."""

    def ask(display: FleetDisplay) -> list[HostRow]:
        if cluster.is_cluster(folder):
            return cluster.status(folder, display.rows, fetched=fetched)
        return run_fleet.status(folder, display.rows, forks=forks, fetched=fetched)

    return _shown(Console(stderr=True), ask)


def clean(inventory: Inventory, *, forks: int, force: bool, as_json: bool) -> None:
    """Remove what fleets brought. Raises `TareError`."""
    with tempfile.TemporaryDirectory(prefix="tare-fleet-") as scratch:
        rows = _shown(
            Console(stderr=True),
            lambda display: run_fleet.clean(Path(scratch), inventory, display.rows, forks=forks, force=force),
        )
    _end(rows, as_json=as_json, good={HostState.ABSENT})


def clean_folder(folder: Path, *, forks: int, force: bool, as_json: bool) -> None:
    """Remove what the fleet of a folder brought to its hosts, or to its cluster. Raises `TareError`."""
    if not cluster.is_cluster(folder):
        clean(run_fleet.read_order(folder).where, forks=forks, force=force, as_json=as_json)
        return
    rows = _shown(Console(stderr=True), lambda display: cluster.clean(folder, display.rows, force=force))
    _end(rows, as_json=as_json, good={HostState.ABSENT})


def write_playbook(folder: Path, words: Sequence[str]) -> None:
    """Write what `tare fleet run` plays into a folder, for those who run Ansible themselves. Raises `TareError`."""
    console = Console(stderr=True)
    written_out.write(folder, words, lambda what: console.print(what, markup=False))
    play, order = (shlex.quote(str(folder / name)) for name in ("run.yml", "fleet.json"))
    emit(f"ansible-playbook -i INVENTORY {play} -e @{order}")


def _shown(console: Console, work: Callable[[FleetDisplay], list[HostRow]]) -> list[HostRow]:
    with FleetDisplay(console) as display:
        return work(display)


def _end(
    rows: Sequence[HostRow],
    *,
    as_json: bool,
    good: set[HostState],
    open_: frozenset[HostState] | set[HostState] = frozenset(),
    again: str = "",
) -> None:
    """Print the rows and exit: 0 where all hosts are as they should be, 3 where some still run, 2 where some failed."""
    if as_json:
        emit(json.dumps({"schema": run_fleet.SCHEMA, "hosts": [asdict(row) for row in rows]}, indent=2))
    else:
        Console().print(table(rows))
    bad = [row for row in rows if row.state not in {*good, *open_}]
    if bad:
        if again:
            line = f"{len(bad)} of {len(rows)} hosts have no result; when that is mended: {again}"
            Console(stderr=True).print(line, markup=False, soft_wrap=True)
        raise typer.Exit(ExitCode.ERROR)
    if any(row.state in open_ for row in rows):
        raise typer.Exit(ExitCode.OPEN)
