"""tare clean: remove what killed runs left on this host."""

from __future__ import annotations

import typer


def clean(
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would be removed."),
) -> None:
    """Remove everything that earlier runs of tare made on this host and could not remove, and nothing else.

    Campaign files and cached images stay. Exits 1 when something could not be removed.

    Examples: [cyan]tare clean --dry-run[/], [cyan]tare clean[/]
    """
    from tare.cli.clean import remove_leftovers

    remove_leftovers(dry_run=dry_run)
