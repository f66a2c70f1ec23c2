"""tare literature: what the published studies found, and what of it follows from their own figures."""

from __future__ import annotations

import typer

from tare.errors import UsageError
from tare.features.studies import literature as library
from tare.suggest import nearest


def _studies(incomplete: str) -> list[str]:
    """For the shell's completion: studies whose names begin so."""
    return [name for name in library.names() if name.startswith(incomplete)]


def literature(
    study: str | None = typer.Argument(
        None, autocompletion=_studies, help=f"A study: {', '.join(library.names())}. Default: all."
    ),
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
    if study is not None and study not in library.names():
        raise UsageError(f"there is no study {study!r}", fix=nearest(study, library.names()))

    from tare.features.studies.commands.literature_run import show_studies

    show_studies(study, check=check, as_json=as_json, as_csv=as_csv)
