"""What `tare clean` does: removes what killed runs left on this host."""

from __future__ import annotations

import contextlib

import typer

from tare.cli.console import Console
from tare.cli.exit_codes import ExitCode
from tare.errors import HostError
from tare.host import lock, own_namespaces, state
from tare.host.resources.journal import Journal, sweep


def remove_leftovers(*, dry_run: bool) -> None:
    """Remove what the journal lists, or with ``dry_run`` print it. Exits 1 when something could not be removed.

    Raises `HostError` while another tare of the same user runs.
    """
    own_namespaces.enter(state.home())
    with lock.held_if_free() if own_namespaces.inside() else contextlib.nullcontext() as holder:
        if holder is not None:  # its processes are not to be seen from other namespaces, and would count as dead
            raise HostError(f"another tare of yours is running: {holder}", fix="wait for its end, or interrupt it")
        _remove_leftovers(dry_run=dry_run)


def _remove_leftovers(*, dry_run: bool) -> None:
    console = Console()
    n_removed = n_kept = 0
    for step in sweep(Journal(state.journal()), dry_run=dry_run):
        if step.kept is None:
            n_removed += 1
            console.print(f"{'would remove' if dry_run else 'removed'} {step.resource}", markup=False, soft_wrap=True)
        else:
            n_kept += 1
            console.print(f"kept {step.resource}: {step.kept}", markup=False, soft_wrap=True)
    verb = "to remove" if dry_run else "removed"
    console.print(
        f"{n_removed} {verb}, {n_kept} kept" if n_removed or n_kept else "nothing of tare's is left on this host"
    )
    if n_kept:
        raise typer.Exit(ExitCode.NO)
