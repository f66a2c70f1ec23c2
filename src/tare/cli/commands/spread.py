"""tare spread: where a campaign's spread comes from, and where its figures change."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.outputs import require_campaign


def spread(
    file: Path = typer.Argument(..., help="A campaign file."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.spread/1)."),
) -> None:
    """Say where the spread of each ratio comes from (starts, or rounds within them) and what more of which would help.

    Also where ratios change in the course of the campaign, and figures in the course of a trial.

    Examples: [cyan]tare spread night.tare[/], [cyan]tare spread --json night.tare[/]
    """
    require_campaign(file)

    from tare.cli.spread import show_spread

    show_spread(file, as_json=as_json)
