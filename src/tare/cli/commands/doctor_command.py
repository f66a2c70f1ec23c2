"""tare doctor: what this host can run, and what would make its figures better."""

from __future__ import annotations

import typer

from tare.cli.commands.given import require_platforms
from tare.cli.commands.names import platforms as as_typed


def doctor(
    names: list[str] = typer.Argument(
        None,
        metavar="[PLATFORM]...",
        help="Default: all that are known.",
        show_default=False,
        callback=as_typed,
    ),
    whole: bool = typer.Option(False, "--all", help="Show every check, not only what to do."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.doctor/1)."),
) -> None:
    """Check the host and try every platform, or those that are named.

    Exits 1 when tare cannot measure here at all, or a platform that is named does not run.

    Examples: [cyan]tare doctor[/], [cyan]tare doctor gvisor[/], [cyan]tare doctor --all[/], [cyan]tare doctor --json[/]
    """
    require_platforms(names or [])

    from tare.cli.doctor import examine

    examine(names or [], as_json=as_json, whole=whole)
