"""tare spread: where a campaign's spread comes from, and where its figures change."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from tare.analysis import steadiness as steady
from tare.cli.report import to_read
from tare.report.spread import render, to_data
from tare.store import Store


def spread(
    file: Path = typer.Argument(..., help="A campaign file."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.spread/1)."),
) -> None:
    """Say where the spread of each ratio comes from (starts, or rounds within them) and what more of which would help.

    Also where ratios change in the course of the campaign, and figures in the course of a trial.

    Examples: [cyan]tare spread night.tare[/], [cyan]tare spread --json night.tare[/]
    """
    with Store.read(file) as store, store.snapshot():
        record, samples = store.record, store.samples()
        found = steady.steadiness(record, samples, store.slices(), store.trials())
    lines = steady.trajectories(record, samples)
    if as_json:
        typer.echo(json.dumps(to_data(found, lines), indent=2))
        return
    to_read().print(render(found, lines, record.baseline))
