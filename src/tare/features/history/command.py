"""tare history: where figures changed over many campaigns."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.catalogue.address import Catalogued, is_address, parse
from tare.cli.choices import OpenPolicy
from tare.cli.commands.given import OPEN
from tare.errors import UsageError
from tare.inputs import require_file
from tare.outputs import check_page


def history(
    place: str = typer.Argument(
        ..., metavar="FOLDER", help="A folder with campaigns (*.tare) of one host, or a catalogue: postgresql://..."
    ),
    host: str | None = typer.Option(None, "--host", help="Of a catalogue: the host whose campaigns are followed."),
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

    Examples: [cyan]tare history nights/[/], [cyan]tare history nights/ --thresholds limits.toml --html nights.html[/],
    [cyan]tare history postgresql://tare@db.example/tare --host web1[/]
    """
    source = _source(place, host)
    if thresholds is not None:
        require_file(thresholds)
    if html is not None:
        check_page(html)

    from tare.features.history.run import show_history

    code = show_history(source, thresholds, absolute=absolute, every=every, html=html, as_json=as_json, policy=policy)
    raise typer.Exit(code)


def _source(place: str, host: str | None) -> Path | Catalogued:
    """The folder, or the catalogue with the host. Raises `UsageError`."""
    if is_address(place):
        return Catalogued(parse(place), host)
    folder = Path(place)
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", fix="name a folder with campaigns; tare diff compares two files")
    if host is not None:
        raise UsageError("--host is of a catalogue, and a folder has one host", fix="leave --host out")
    return folder
