"""tare literature: what the published studies found, and what of it follows from their own figures."""

from __future__ import annotations

import json

import typer

from tare import literature as library
from tare.analysis.published import check as check_again
from tare.cli.report import to_read
from tare.errors import UsageError
from tare.report.literature import checks, checks_to_data, overview, shown, to_csv, to_data


def literature(
    study: str | None = typer.Argument(None, help=f"A study: {', '.join(library.names())}. Default: all."),
    check: bool = typer.Option(False, "--check", help="Compute again what a study derives from its own figures."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.literature/1)."),
    as_csv: bool = typer.Option(False, "--csv", help="Print the figures as CSV, one a line."),
) -> None:
    """Show the published studies: every printed figure with its deviation, runs, unit and place in the paper.

    With --check the exit code is 1 when something does not follow that is not listed as the study's slip.

    Examples: [cyan]tare literature[/], [cyan]tare literature karna-2021[/], [cyan]tare literature --check[/],
    [cyan]tare literature li-2017 --csv[/]
    """
    if as_csv and (as_json or check):
        raise UsageError("--csv has the figures alone", fix="leave --json and --check out, or --csv")
    chosen = [library.load(study)] if study is not None else library.studies()
    if check:
        found = [check_again(one) for one in chosen]
        if as_json:
            typer.echo(json.dumps(checks_to_data(found), indent=2, ensure_ascii=False))
        else:
            to_read().print(checks(found))
        raise typer.Exit(0 if all(one.good for one in found) else 1)
    if as_json:
        typer.echo(json.dumps(to_data(chosen), indent=2, ensure_ascii=False))
    elif as_csv:
        typer.echo(to_csv(chosen), nl=False)
    else:
        to_read().print(overview(chosen) if study is None else shown(chosen[0]))
