"""tare history: where figures changed over many campaigns."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.cli.choices import OpenPolicy
from tare.cli.commands.given import OPEN
from tare.errors import UsageError
from tare.inputs import require_file
from tare.outputs import check_page


def history(
    folder: Path = typer.Argument(..., help="A folder with campaigns (*.tare) of one host."),
    thresholds: Path | None = typer.Option(
        None, "--thresholds", help="TOML, as for tare diff: how much worse is a regression."
    ),
    absolute: bool = typer.Option(
        False, "--absolute", help="Follow the figures themselves, and not the overheads against the baseline."
    ),
    every: bool = typer.Option(False, "--all", help="Show every figure, not only those that changed."),
    html: Path | None = typer.Option(None, "--html", help="Write a page with a drawing of each figure."),
    policy: OpenPolicy = OPEN,
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.history/1)."),
) -> None:
    """Say where each figure changed over the campaigns of a folder, in order of time.

    Exit codes: 0 no regression, 1 the last change of some figure is for the worse, 3 cannot tell (--open), 2 an error.

    Examples: [cyan]tare history nights/[/], [cyan]tare history nights/ --thresholds limits.toml --html nights.html[/]
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", fix="name a folder with campaigns; tare diff compares two files")
    if thresholds is not None:
        require_file(thresholds)
    if html is not None:
        check_page(html)

    from tare.cli.history import show_history

    code = show_history(folder, thresholds, absolute=absolute, every=every, html=html, as_json=as_json, policy=policy)
    raise typer.Exit(code)
