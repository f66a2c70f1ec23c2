"""tare spread: where a campaign's spread comes from, and where its figures change."""

from __future__ import annotations

import json
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

    from tare.cli.console import emit
    from tare.cli.report import to_read
    from tare.features.spread import analysis, views
    from tare.store import read_store

    with read_store(file) as store, store.snapshot():
        record, samples = store.record, store.samples()
        spreads = analysis.steadiness(record, samples, store.slices(), store.trials())
    lines = analysis.trajectories(record, samples)
    if as_json:
        emit(json.dumps(views.to_data(spreads, lines), indent=2))
        return
    to_read().print(views.render(spreads, lines, record.baseline))
