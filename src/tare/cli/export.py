"""tare export: the raw samples, for other tools."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from tare.errors import UsageError
from tare.report.export import Format
from tare.report.export import export as write
from tare.store.store import Store


def export(
    file: Path = typer.Argument(..., help="A campaign file."),
    form: Format = typer.Option(..., "--format", help="csv, or jsonl (one JSON object a line)."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Where to. Default: standard output."),
) -> None:
    """Write every sample with the facts of its trial, failed trials too.

    Examples: [cyan]tare export night.tare --format csv -o night.csv[/],
    [cyan]tare export night.tare --format jsonl | head[/]
    """
    if output is not None and output.exists():
        raise UsageError(f"{output} exists and is never overwritten", fix="give another name")
    with Store.read(file) as store:
        if output is None:
            write(store, form, sys.stdout)
        else:
            with output.open("w", encoding="utf-8") as target:
                write(store, form, target)
