"""tare sql: a query over campaigns."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.cli.commands.given import FORCE
from tare.errors import UsageError
from tare.outputs import check_output, require_campaign
from tare.report.formats.tables import Format, QueryFormat


def sql(
    arguments: list[str] = typer.Argument(..., metavar="FILES... QUERY", help="Campaign files, and then the query."),
    form: QueryFormat = typer.Option(QueryFormat.MARKDOWN, "--format", help="How the rows are written."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Output file. Default: standard output."),
    force: bool = FORCE,
) -> None:
    """Ask campaigns in SQL (DuckDB): tables results, samples, trials, output, telemetry and more (docs/exports.md).

    Each table has the rows of all files; the column campaign tells them apart.

    Examples: [cyan]tare sql night.tare "select platform, avg(value) from samples group by all"[/],
    [cyan]tare sql nights/*.tare "from results where verdict = 'slower'" --format csv -o slower.csv[/]
    """
    *files, statement = arguments
    if not files:
        raise UsageError("the campaigns or the query are missing", fix='tare sql FILES... "select ..."')
    if form is QueryFormat.PARQUET and output is None:
        raise UsageError("Parquet is written to a file", fix="-o FILE.parquet")
    paths = [Path(file) for file in files]
    for path in paths:
        require_campaign(path)
    if output is not None:
        check_output(output, paths, force=force)

    from tare.cli.sql import show_query

    show_query(paths, statement, Format(form.value), output, force=force)
