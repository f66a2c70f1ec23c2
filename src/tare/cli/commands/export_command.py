"""tare export: a table of a campaign, for other tools."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.cli.commands import completing
from tare.cli.commands.given import FORCE
from tare.errors import UsageError
from tare.outputs import check_output, require_campaign
from tare.report.formats.tables import CampaignTable, Format

#: Formats that have one table only.
_FORMATS_OF_THEIR_OWN = frozenset({Format.FOLDED, Format.OPENMETRICS, Format.INFLUX})


def export(
    file: Path = typer.Argument(..., help="A campaign file."),
    form: Format = typer.Option(
        ...,
        "--format",
        help="csv, jsonl (an object a line), parquet, latex, markdown; folded for stacks; "
        "openmetrics or influx for the figures.",
    ),
    table: CampaignTable = typer.Option(
        CampaignTable.SAMPLES,
        "--table",
        help="Samples, figures, trials, what tools printed, what the host did ... (docs/exports.md has the columns).",
    ),
    section: str | None = typer.Option(
        None, "--section", metavar="TABLE", help="Instead of --table: a table of a plug-in's section of the report."
    ),
    output: Path | None = typer.Option(None, "-o", "--output", help="Output file. Default: standard output."),
    platform: list[str] = typer.Option(
        [],
        "-p",
        "--platform",
        autocompletion=completing.platforms,
        help="Only this platform's rows; * for any text; may be given again. Default: all.",
    ),
    workload: list[str] = typer.Option(
        [], "-w", "--workload", autocompletion=completing.workloads, help="Only this workload's, likewise."
    ),
    metric: list[str] = typer.Option(
        [],
        "--metric",
        autocompletion=completing.metrics,
        help="Only this metric: METRIC or WORKLOAD/METRIC, likewise.",
    ),
    force: bool = FORCE,
    raw: bool = typer.Option(
        False,
        "--raw",
        help="Leave texts in CSV as they are. Otherwise none is a formula, a line break or a command to a CI's log.",
    ),
) -> None:
    """Write every sample with the facts of its trial, failed trials too; or another table.

    Examples: [cyan]tare export night.tare --format csv -o night.csv[/],
    [cyan]tare export night.tare --format jsonl | head[/],
    [cyan]tare export night.tare --table results --format parquet -o figures.parquet[/],
    [cyan]tare export night.tare --table overheads --format latex -o table.tex[/],
    [cyan]tare export night.tare --table overheads --format latex -p runc -p docker -w redis[/],
    [cyan]tare export night.tare --table output --format jsonl[/],
    [cyan]tare export night.tare --table telemetry --format csv[/],
    [cyan]tare export kernel.tare --table footprints --format csv[/],
    [cyan]tare export kernel.tare --table surfaces --format csv[/],
    [cyan]tare export night.tare --format openmetrics[/],
    [cyan]tare export flames.tare --table stacks --format folded | flamegraph.pl > flames.svg[/]
    """
    if section is not None and (table is not CampaignTable.SAMPLES or form in _FORMATS_OF_THEIR_OWN):
        raise UsageError("--section names the table", fix="leave out --table; csv, jsonl, parquet, latex or markdown")
    if (table is CampaignTable.STACKS) != (form is Format.FOLDED):
        raise UsageError(
            "stacks are exported folded, and nothing else is",
            fix="--table stacks --format folded; --table footprints --format csv has them as rows",
        )
    if table is CampaignTable.OVERHEADS and form not in {Format.LATEX, Format.MARKDOWN}:
        raise UsageError("overheads are a table for people", fix=f"--table results --format {form} has the figures")
    if form is Format.PARQUET and output is None:
        raise UsageError("Parquet is written to a file", fix="-o FILE.parquet")
    if form in {Format.OPENMETRICS, Format.INFLUX} and table is not CampaignTable.SAMPLES:
        raise UsageError(f"{form.value} has the figures of a campaign, and no {table.value}", fix="leave out --table")
    require_campaign(file)
    if (platform or workload or metric) and table is CampaignTable.STACKS:
        raise UsageError("stacks are exported whole", fix="grep finds a platform's: its name begins each line")
    if output is not None:
        check_output(output, [file], force=force)

    from tare.cli.export import export_section, export_table
    from tare.report.formats.selection import Selection

    selection = Selection(tuple(platform), tuple(workload), tuple(metric))
    if section is not None:
        export_section(file, section, form, output, raw=raw, selection=selection, force=force)
        return
    export_table(file, table, form, output, raw=raw, selection=selection, force=force)
