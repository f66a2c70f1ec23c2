"""tare compare: platforms against each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tare.errors import UsageError
from tare.outputs import require_campaign

if TYPE_CHECKING:
    from tare.store import CampaignRecord


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

    from tare.cli.console import emit
    from tare.cli.report import to_read
    from tare.features.compare import analysis, views
    from tare.store import read_store

    with read_store(file) as store, store.snapshot():
        _require(platform, store.record)
        compared = analysis.compare(store.record, store.samples(), platform)
    if as_json:
        emit(json.dumps(views.to_data(compared), indent=2))
        return
    to_read().print(views.render(compared))


def _require(names: Sequence[str], record: CampaignRecord) -> None:
    """Raise `UsageError` for a platform that did not take part."""
    there = [platform.name for platform in record.platforms]
    for name in names:
        if name not in there:
            raise UsageError(f"{name} did not take part in this campaign", fix=f"name of {', '.join(there)}")
