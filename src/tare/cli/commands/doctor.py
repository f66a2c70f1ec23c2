"""tare doctor: what this host can run, and what would make its figures better."""

from __future__ import annotations

import typer


def doctor(
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.doctor/1)."),
) -> None:
    """Check the host and try every platform. Exits 1 when tare cannot measure here at all.

    Examples: [cyan]tare doctor[/], [cyan]tare doctor --json[/]
    """
    from tare.cli.doctor import examine

    examine(as_json=as_json)
