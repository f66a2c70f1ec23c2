"""tare fleet: many hosts, one result."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.catalogue.address import is_address, parse
from tare.cli.commands import fleet_run_command
from tare.errors import UsageError
from tare.outputs import check_page

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)


@app.callback()
def fleet() -> None:
    """Many hosts, one result: a campaign a host, merged without pooling what was measured."""


@app.command("report")
def report(
    places: list[str] = typer.Argument(
        ...,
        help="Folders with a campaign of each host (HOST.tare, or HOST/*.tare), or such files; or a catalogue:"
        " postgresql://...",
    ),
    by: str | None = typer.Option(
        None, "--by", help="Group the hosts by a fact: cpu, microcode, kernel, thp, governor, virtualization, ..."
    ),
    rate: float = typer.Option(
        5.0, "--false-discoveries", help="At most this share of the hosts called odd are not odd, in per cent."
    ),
    each_file: bool = typer.Option(
        False, "--each-file", help="Count every file as a host, also files that were measured on one machine."
    ),
    every: bool = typer.Option(False, "--all", help="Show every figure, not only the headlines."),
    html: Path | None = typer.Option(None, "--html", help="Write a page with every host of every figure drawn."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.fleet/1)."),
) -> None:
    """Merge a campaign of each host: the mean cost, the spread between hosts, what to expect of a new host, odd hosts.

    Examples: [cyan]tare fleet report campaigns/[/],
    [cyan]tare fleet report campaigns/ --by kernel --html fleet.html[/],
    [cyan]tare fleet report web1.tare web2.tare web3.tare --json[/]
    """
    if not 0 < rate < 50:
        raise UsageError(f"--false-discoveries {rate:g} is no such share", fix="give per cent, such as 5")
    catalogues = [place for place in places if is_address(place)]
    if catalogues and len(places) > 1:
        raise UsageError("a catalogue is read alone", fix="name the catalogue, or folders and files")
    files = [] if catalogues else [Path(place) for place in places]
    for file in files:
        if not file.exists():
            raise UsageError(f"{file} does not exist", fix="name a folder with campaigns, or their files")
    if html is not None:
        check_page(html, files)
    source = parse(catalogues[0]) if catalogues else files

    from tare.cli.fleet_report import show_fleet

    show_fleet(source, by=by, rate=rate / 100, each_file=each_file, every=every, html=html, as_json=as_json)


fleet_run_command.add(app)
