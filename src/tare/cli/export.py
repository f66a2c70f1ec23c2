"""tare export: the raw samples, for other tools."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

import typer

from tare.errors import UsageError
from tare.report.export import write_csv, write_jsonl
from tare.store.store import Store


class Format(StrEnum):
    """What samples can be written as."""

    CSV = "csv"
    JSONL = "jsonl"


def export(
    file: Path = typer.Argument(..., help="A campaign file."),
    form: Format = typer.Option(..., "--format", help="csv, or jsonl (one JSON object a line)."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Where to. Default: standard output."),
) -> None:
    """Write every sample with the facts of its trial, failed trials too.

    Examples: [cyan]tare export night.tare --format csv -o night.csv[/], [cyan]tare export night.tare --format jsonl | head[/]
    """
    if output is not None and output.exists():
        raise UsageError(f"{output} exists and is never overwritten", fix="give another name")
    write = {Format.CSV: write_csv, Format.JSONL: write_jsonl}[form]
    with Store.read(file) as store:
        if output is None:
            write(store, sys.stdout)
        else:
            with output.open("w", encoding="utf-8") as target:
                write(store, target)
