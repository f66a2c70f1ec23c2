"""What `tare clean` does: removes what killed runs left on this host."""

from __future__ import annotations

import os

import typer

from tare.cli.console import Console
from tare.errors import HostError
from tare.host import state
from tare.host.journal import Journal, sweep


def remove_leftovers(*, dry_run: bool) -> None:
    """Remove what the journal has, or say what that is. Exits 1 when something could not be removed."""
    if os.geteuid() != 0:
        raise HostError("what tare made belongs to root", fix="run tare as root (sudo)")
    console = Console()
    removed = kept = 0
    for step in sweep(Journal(state.journal()), dry_run=dry_run):
        if step.kept is None:
            removed += 1
            console.print(f"{'would remove' if dry_run else 'removed'} {step.resource}", markup=False, soft_wrap=True)
        else:
            kept += 1
            console.print(f"kept {step.resource}: {step.kept}", markup=False, soft_wrap=True)
    verb = "to remove" if dry_run else "removed"
    console.print(f"{removed} {verb}, {kept} kept" if removed or kept else "nothing of tare's is left on this host")
    if kept:
        raise typer.Exit(1)
