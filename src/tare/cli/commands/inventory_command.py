"""tare list: the platforms, workloads and metrics that there are."""

from __future__ import annotations

import typer

from tare.cli.choices import Listing


def inventory(
    what: Listing = typer.Argument(..., help="platforms, workloads or metrics"),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.list/1)."),
) -> None:
    """List what tare knows. Whether a platform runs on this host is what [bold]tare doctor[/] says.

    Examples: [cyan]tare list platforms[/], [cyan]tare list metrics --json[/]
    """
    from tare.cli.inventory import show_inventory

    show_inventory(what, as_json=as_json)
