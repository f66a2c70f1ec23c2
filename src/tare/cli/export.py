"""`tare export`: writes a table of a campaign, for other tools."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tare.cli.console import emitting
from tare.errors import UsageError
from tare.outputs import written
from tare.report.campaign.report_builder import build
from tare.report.formats.selection import Selection
from tare.report.formats.table_export import export as write
from tare.report.formats.table_export import export_parquet, export_stacks, write_frame
from tare.report.formats.tables import CampaignTable, Format
from tare.report.section import tables_of
from tare.store import read_store


def export_table(
    file: Path,
    table: CampaignTable,
    form: Format,
    output: Path | None,
    *,
    raw: bool,
    selection: Selection,
    force: bool = False,
) -> None:
    """Write a table of a campaign, or its figures. ``output`` None: to standard output, not of Parquet.

    ``force``: what is there is replaced.

    Raises `TareError`.
    """
    if form in {Format.OPENMETRICS, Format.INFLUX}:
        from tare.report.formats.metric_formats import influx, openmetrics  # noqa: PLC0415 (slow to load, and rarely wanted)

        with read_store(file) as store:
            selection.check(store.record)
        report = selection.report(build(file))
        with emitting() if output is None else written(output, new=not force) as target:
            target.write(influx(report) if form is Format.INFLUX else openmetrics([report]))
        return
    with read_store(file) as store, store.snapshot(), contextlib.ExitStack() as files:
        selection.check(store.record)
        if form is Format.PARQUET and output is not None:
            export_parquet(store, table, files.enter_context(written(output, "wb", new=not force)), selection)
            return
        target = files.enter_context(emitting() if output is None else written(output, new=not force))
        if table is CampaignTable.STACKS:
            export_stacks(store, target)
        else:
            write(store, table, form, target, raw=raw, selection=selection)


def export_section(
    file: Path, table: str, form: Format, output: Path | None, *, raw: bool, selection: Selection, force: bool = False
) -> None:
    """Write a table of a section of the report. Raises `TareError`, also for an unknown table."""
    with read_store(file) as store:
        selection.check(store.record)
    tables = tables_of(build(file))
    if table not in tables:
        known = f"its sections have {', '.join(tables)}" if tables else "tare export --table has tare's own"
        raise UsageError(f"no section of {file} has the table {table!r}", fix=known)
    frame = selection.frame(tables[table])
    if form is Format.PARQUET and output is not None:
        with written(output, "wb", new=not force) as binary:
            frame.write_parquet(binary)
        return
    with emitting() if output is None else written(output, new=not force) as target:
        if raw and form is Format.CSV:
            target.write(frame.write_csv())
        else:
            write_frame(frame, form, target)
