"""Exports a table of a campaign.

CSV or JSON lines for programs, in pieces, so that memory stays small; Parquet with types, units and meanings; LaTeX and
Markdown for people. Stacks: folded, for tools that draw flame graphs.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, TextIO

import polars as pl

from tare.errors import UsageError
from tare.records import LINE_END
from tare.report.formats import documents, parquet
from tare.report.formats.overheads import of_report, overheads
from tare.report.formats.selection import EVERYTHING, Selection
from tare.report.formats.table_frames import Row, frames, names, results_frame, rows, whole
from tare.report.formats.tables import CampaignTable, Format
from tare.report.model import Report
from tare.report.parts.escaping import FORMULA, spreadsheet
from tare.report.section import lines_of
from tare.safe_text import COMMAND_ANYWHERE, COMMAND_OF_A_LINE, without_commands
from tare.store import Store

#: LaTeX and Markdown are for people, and so long at most.
MAX_DOCUMENT_ROWS = 5_000


def export(
    store: Store,
    table: CampaignTable,
    form: Format,
    out: TextIO,
    *,
    raw: bool = False,
    selection: Selection = EVERYTHING,
) -> int:
    """Write a table (`tare.report.formats.columns`) but stacks, in a text format; returns the number of its rows.

    Of samples there is one row a trial without any too, so that failures are exported. CSV: empty where there is
    nothing; ``raw``: its texts as they are, and not as `spreadsheet` makes them. JSON lines: null; NaN and infinities
    of samples, which JSON does not have, are the strings "nan", "inf" and "-inf". Raises `UsageError` for a document
    that nobody would read.
    """
    if form in {Format.LATEX, Format.MARKDOWN}:
        return _write_document(store, table, form, out, selection)
    if table is CampaignTable.SAMPLES:
        kept = (row for row in rows(store) if selection.row(row["platform"], row["workload"], row["metric"]))
        return _write_samples_csv(kept, out, raw=raw) if form is Format.CSV else _write_samples_jsonl(kept, out)
    count = 0
    if form is Format.CSV:
        out.write(",".join(names(table)) + "\n")
    for frame in frames(store, table, selection):
        out.write(_csv(frame, raw=raw) if form is Format.CSV else frame.write_ndjson())
        count += frame.height
    return count


def export_results(report: Report, form: Format, out: TextIO) -> None:
    """Write the table of results as CSV, or that of overheads as LaTeX or Markdown, of a report that is there."""
    if form is Format.CSV:
        out.write(_guarded_frame(results_frame(report)).write_csv())
    else:
        content = of_report(report)
        out.write(documents.to_latex(content) if form is Format.LATEX else documents.to_markdown(content))


def export_parquet(store: Store, table: CampaignTable, out: BinaryIO | Path, selection: Selection = EVERYTHING) -> int:
    """Write a table but stacks and overheads as Parquet; returns the number of its rows."""
    frame = whole(store, table, selection)
    parquet.write(frame, table, out, campaign=store.record.id)
    return frame.height


def export_stacks(store: Store, out: TextIO) -> int:
    """Write the stacks, a line each, as a section makes them; returns the number of lines. Raises `UsageError`."""
    count = 0
    for line in lines_of(store, CampaignTable.STACKS.value):
        out.write(f"{without_commands(line)}\n")
        count += 1
    return count


def write_frame(frame: pl.DataFrame, form: Format, out: TextIO) -> None:
    """Write any frame as CSV, JSON lines, LaTeX or Markdown. Raises `UsageError` for a document nobody would read."""
    if form is Format.CSV:
        out.write(_guarded_frame(frame).write_csv())
    elif form is Format.JSONL:
        out.write(frame.write_ndjson())
    else:
        _require_short(frame.height, "the answer")
        content = documents.of_any(frame)
        out.write(documents.to_latex(content) if form is Format.LATEX else documents.to_markdown(content))


def _require_short(rows: int, name: str) -> None:
    if rows > MAX_DOCUMENT_ROWS:
        raise UsageError(
            f"{name} has {rows:,} rows, and a document {MAX_DOCUMENT_ROWS:,} at most",
            fix="--format csv or parquet; tare sql sums it up",
        )


def _write_document(store: Store, table: CampaignTable, form: Format, out: TextIO, selection: Selection) -> int:
    if table is CampaignTable.OVERHEADS:
        content = overheads(store, selection)
    else:
        frame = whole(store, table, selection)
        _require_short(frame.height, table.value)
        content = documents.of_frame(frame, table)
    out.write(documents.to_latex(content) if form is Format.LATEX else documents.to_markdown(content))
    return len(content.rows)


def _guarded_frame(frame: pl.DataFrame) -> pl.DataFrame:
    columns = (name for name, kind in frame.schema.items() if kind == pl.String or isinstance(kind, pl.Enum))
    return frame.with_columns(_guarded(pl.col(name).cast(pl.String)).alias(name) for name in columns)


def _guarded(text: pl.Expr) -> pl.Expr:
    """Return what `spreadsheet` makes of a text, for a whole column."""
    shown = pl.when(text.str.slice(0, 1).is_in(FORMULA)).then(pl.lit("'") + text).otherwise(text)
    shown = shown.str.replace_all(LINE_END, " ")
    for command in (COMMAND_OF_A_LINE, COMMAND_ANYWHERE):
        shown = shown.str.replace_all(command, "${1}\N{REPLACEMENT CHARACTER}${2}")
    return shown


def _csv(frame: pl.DataFrame, *, raw: bool) -> str:
    return (frame if raw else _guarded_frame(frame)).write_csv(include_header=False)


class _LineFeeds:
    """Rows whose last two characters end the line, written with a line feed alone."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, row: str) -> int:
        return self._out.write(row.removesuffix("\r\n") + "\n")


def _write_samples_csv(table: Iterable[Row], out: TextIO, *, raw: bool) -> int:
    # The writer quotes a carriage return only where it ends lines itself; bare, it would begin a row in a spreadsheet.
    writer = csv.writer(_LineFeeds(out), lineterminator="\r\n")
    writer.writerow(names(CampaignTable.SAMPLES))
    count = 0
    for row in table:
        writer.writerow(row.values() if raw else map(spreadsheet, row.values()))  # they come in the columns' order
        count += 1
    return count


def _write_samples_jsonl(table: Iterable[Row], out: TextIO) -> int:
    count = 0
    for row in table:
        value = row["value"]
        if isinstance(value, float) and not math.isfinite(value):
            row["value"] = str(value)
        out.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
        count += 1
    return count
