"""tare clean: remove what killed runs left on this host."""

from __future__ import annotations

import typer


def clean(
    dry_run: bool = typer.Option(False, "--dry-run", help="Only list what would be removed."),
    images: bool = typer.Option(
        False,
        "--images",
        help="Also remove images that this version of tare no longer uses, here and in Docker, Podman and containerd.",
    ),
) -> None:
    """Remove everything that earlier runs of tare made on this host and could not remove, and nothing else.

    Campaign files stay, and so do the images that the next campaign may take. Exits 1 when something could not be
    removed.

    Examples: [cyan]tare clean --dry-run[/], [cyan]tare clean[/], [cyan]tare clean --images[/]
    """
    from tare.cli.clean import remove_leftovers

    if not images:
        remove_leftovers(dry_run=dry_run)
        return

    from tare.cli.unused_images import remove_unused

    remove_leftovers(dry_run=dry_run, besides=remove_unused)
