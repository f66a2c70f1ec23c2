"""tare score: a campaign in the figures by which the studies sum up."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from tare.analysis import profile as profiles
from tare.analysis.sheet import score as scored
from tare.cli.report import to_read
from tare.report.score import render, to_data
from tare.store import Store


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
    told = profiles.load(profile)
    with Store.read(file) as store, store.snapshot():
        record = store.record
        sheet = scored(record, store.samples(), told)
    if as_json:
        typer.echo(json.dumps(to_data(sheet, told), indent=2))
        return
    to_read().print(render(sheet, told, record.baseline))
