"""`tare clean`: removes what killed runs left on this host, and images that are no use any more."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import typer

from tare.cli.console import Console
from tare.cli.exit_codes import ExitCode
from tare.errors import HostError
from tare.host import lock, own_namespaces, state
from tare.host.resources.journal import Journal, sweep

#: Removes more, or only prints it; returns how much could not be removed.
Besides = Callable[[Console, bool], int]


def remove_leftovers(*, dry_run: bool, besides: Besides | None = None) -> None:
    """Remove what the journal lists, or with ``dry_run`` print it. Exits 1 when something could not be removed.

    ``besides``: what is done then while no other tare runs on this host. Raises `HostError` while another tare of the
    same user runs, and with ``besides`` while any does, unless it is only printed.
    """
    own_namespaces.enter(state.home())
    with (
        lock.held_if_free()
        if (besides and not dry_run) or own_namespaces.inside()
        else contextlib.nullcontext() as holder
    ):
        if holder is not None:  # its processes are not to be seen from other namespaces, and would count as dead
            whose = "another tare of yours" if own_namespaces.inside() else "another tare"
            raise HostError(f"{whose} is running: {holder}", fix="wait for its end, or interrupt it")
        console = Console()
        n_kept = _remove_leftovers(console, dry_run=dry_run)
        if besides is not None:
            n_kept += besides(console, dry_run)
    if n_kept:
        raise typer.Exit(ExitCode.NO)


def _remove_leftovers(console: Console, *, dry_run: bool) -> int:
    """Return how many could not be removed."""
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
    return n_kept
