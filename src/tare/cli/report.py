"""tare report: what a campaign found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from tare.analysis.attack_profile import Weights, load_weights
from tare.report.build import build_all
from tare.report.footprints import Asked, read_files
from tare.report.html import write_html
from tare.report.model import to_json
from tare.report.terminal import render_all

#: Width of the tables where the output is not a terminal.
PLAIN_WIDTH = 120


def report(
    files: list[Path] = typer.Argument(..., help="Campaign files."),
    html: Path | None = typer.Option(None, "--html", help="Write the HTML report here (one file, opens offline)."),
    beside: str | None = typer.Option(
        None, "--beside", help="Set the results beside a study's published figures. Default: the profile's study."
    ),
    every: bool = typer.Option(False, "--all", help="Show every metric, not only the headlines."),
    weights: Path | None = typer.Option(
        None,
        "--weights",
        help="Densities of bugs for the attack profile of footprints: TOML, or CSV with name,density.",
    ),
    functions: Path | None = typer.Option(
        None, "--functions", help="Source files of kernel functions for footprints: CSV with name,file."
    ),
    sources: Path | None = typer.Option(
        None, "--sources", help="The kernel's source tree: the page shows hits beside the lines of footprints."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.report/2)."),
) -> None:
    """Show what campaigns found: overhead against the baseline with its 95 % interval, verdict and noise floor.

    Examples: [cyan]tare report night.tare[/], [cyan]tare report night.tare --html night.html[/],
    [cyan]tare report night.tare --beside karna-2021[/], [cyan]tare report night.tare --json | jq .results[/]
    """
    asked = Asked(
        weights=load_weights(weights) if weights else Weights(),
        files=read_files(functions) if functions else {},
        sources=sources,
    )
    show(files, html=html, as_json=as_json, every=every, beside=beside, asked=asked)


def show(
    files: Sequence[Path],
    *,
    html: Path | None,
    as_json: bool,
    every: bool = False,
    beside: str | None = None,
    asked: Asked | None = None,
) -> None:
    """Print the report, and write the HTML file when a place is given. ``beside``: a study, by name."""
    reports = write_html(files, html, beside, asked) if html is not None else build_all(files, beside, asked)
    if as_json:
        typer.echo(to_json(reports))
        return
    console = to_read()
    console.print(render_all(reports, width=console.width, every_metric=every))
    for file in files:
        console.print(f"campaign: {file}", markup=False)
    if html is not None:
        console.print(f"report:   {html.resolve().as_uri()}", markup=False, soft_wrap=True)


def to_read() -> Console:
    """Where tables are printed: as wide as the terminal, and of a fixed width where there is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)
