"""tare compare: platforms against each other."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.outputs import require_campaign


def compare(
    file: Path = typer.Argument(..., help="A campaign file."),
    platform: list[str] = typer.Option([], "-p", "--platform", help="Only these, and the baseline; may be repeated."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.compare/1)."),
) -> None:
    """Compare every platform with every other one, with what so many comparisons cost in certainty.

    Over common blocks: paired max-t, whose intervals hold for all pairs at once. For `--design sequential`: Welch's
    analysis of variance with Games-Howell, and what the studies used: analysis of variance with Tukey's HSD, and
    Kruskal-Wallis.

    Examples: [cyan]tare compare night.tare[/], [cyan]tare compare night.tare -p docker -p podman[/]
    """
    require_campaign(file)

    from tare.cli.compare import show_comparison

    show_comparison(file, platform, as_json=as_json)
