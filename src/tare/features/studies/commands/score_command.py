"""tare score: a campaign in the figures by which the studies sum up."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.inputs import require_file
from tare.outputs import require_campaign


def score(
    file: Path = typer.Argument(..., help="A campaign file."),
    profile: Path | None = typer.Option(
        None, "--profile", help="TOML: features, thresholds, priorities. Default: Kärnä's (2021), for tare's workloads."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.score/1)."),
) -> None:
    """Score platforms: points by an evaluation profile (DESMET), per cent of bare metal, standardised and row scores.

    A score is a sum of figures without their intervals: see `tare report` for what is sure.

    Examples: [cyan]tare score night.tare[/], [cyan]tare score night.tare --profile ours.toml[/]
    """
    if profile is not None:
        require_file(profile)
    require_campaign(file)

    from tare.features.studies.commands.score_run import show_scores

    show_scores(file, profile, as_json=as_json)
