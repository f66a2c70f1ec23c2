"""What `tare export` does: writes the raw samples, for other tools."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tare.cli.console import emitting
from tare.outputs import written
from tare.report.campaign.build import build
from tare.report.formats.export import export as write
from tare.report.formats.export import (
    export_footprints,
    export_output,
    export_stacks,
    export_surfaces,
    export_telemetry,
)
from tare.report.formats.tables import Format, Table
from tare.store import read_store


def export_table(file: Path, table: Table, form: Format, output: Path | None, *, raw: bool) -> None:
    """Write a table of a campaign, or its figures. ``output`` None: to standard output. Raises `TareError`."""
    if form in {Format.OPENMETRICS, Format.INFLUX}:
        from tare.report.formats.metrics import influx, openmetrics  # noqa: PLC0415 (slow to load, and rarely wanted)

        report = build(file)
        with emitting() if output is None else written(output, new=True) as target:
            target.write(influx(report) if form is Format.INFLUX else openmetrics([report]))
        return
    with read_store(file) as store, contextlib.ExitStack() as files:
        target = files.enter_context(emitting() if output is None else written(output, new=True))
        if table is Table.SAMPLES:
            write(store, form, target, raw=raw)
        elif table is Table.OUTPUT:
            export_output(store, form, target, raw=raw)
        elif table is Table.FOOTPRINTS:
            export_footprints(store, form, target, raw=raw)
        elif table is Table.SURFACES:
            export_surfaces(store, form, target, raw=raw)
        elif table is Table.STACKS:
            export_stacks(store, target)
        else:
            export_telemetry(store, table, form, target, raw=raw)
