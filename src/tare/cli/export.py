"""tare export: the raw samples, for other tools."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import typer

from tare.errors import UsageError
from tare.report.export import Format, Table, export_footprints, export_stacks, export_surfaces, export_telemetry
from tare.report.export import export as write
from tare.store.store import Store


def export(
    file: Path = typer.Argument(..., help="A campaign file."),
    form: Format = typer.Option(..., "--format", help="csv, or jsonl (one JSON object a line); folded for stacks."),
    table: Table = typer.Option(
        Table.SAMPLES,
        "--table",
        help="The samples, what the host did meanwhile, what ran of its kernel, stacks, or what may be asked of it.",
    ),
    output: Path | None = typer.Option(None, "-o", "--output", help="Where to. Default: standard output."),
) -> None:
    """Write every sample with the facts of its trial, failed trials too; or the telemetry; footprints; surfaces.

    Examples: [cyan]tare export night.tare --format csv -o night.csv[/],
    [cyan]tare export night.tare --format jsonl | head[/],
    [cyan]tare export night.tare --table telemetry --format csv[/],
    [cyan]tare export kernel.tare --table footprints --format csv[/],
    [cyan]tare export kernel.tare --table surfaces --format csv[/],
    [cyan]tare export flames.tare --table stacks --format folded | flamegraph.pl > flames.svg[/]
    """
    if (table is Table.STACKS) != (form is Format.FOLDED):
        raise UsageError(
            "stacks are exported folded, and nothing else is",
            fix="--table stacks --format folded; --table footprints --format csv has them as rows",
        )
    if output is not None and output.exists():
        raise UsageError(f"{output} exists and is never overwritten", fix="give another name")
    with Store.read(file) as store, contextlib.ExitStack() as files:
        target = sys.stdout if output is None else files.enter_context(output.open("w", encoding="utf-8"))
        if table is Table.SAMPLES:
            write(store, form, target)
        elif table is Table.FOOTPRINTS:
            export_footprints(store, form, target)
        elif table is Table.SURFACES:
            export_surfaces(store, form, target)
        elif table is Table.STACKS:
            export_stacks(store, target)
        else:
            export_telemetry(store, table, form, target)
