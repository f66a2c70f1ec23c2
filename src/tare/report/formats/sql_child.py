"""``python -m tare.report.formats.sql_child``: carry out a query in a process of its own, which can be ended.

Internal: `tare.cli.sql` starts it. A function of DuckDB's may run for hours without a look at signals or at an
interrupt. What is asked comes on standard input as JSON: `files`, `statement`, `form`, and the places for the `rows`
and for the `error`, which is JSON too (`what`, `fix`).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import polars as pl

from tare.errors import TareError, UsageError
from tare.report.formats.campaign_sql import query
from tare.report.formats.table_export import write_frame
from tare.report.formats.tables import Format
from tare.safe_text import encodable

_FIX = "cast what is no number, text or time: select column::varchar"


def main(data: bytes) -> int:
    """Carry out the query. 0: its rows are written; 2: the error is."""
    # Not by pydantic, whose texts cannot have the bytes of a file's name that are not UTF-8.
    asked = json.loads(data)
    tempfile.tempdir = str(Path(asked["rows"]).parent)  # who starts this removes that, however this ends
    try:
        _write([Path(file) for file in asked["files"]], asked["statement"], Format(asked["form"]), Path(asked["rows"]))
    except TareError as error:
        refusal = {"what": encodable(error.what), "fix": error.fix}
        Path(asked["error"]).write_text(json.dumps(refusal), encoding="utf-8")
        return 2
    return 0


def _write(files: list[Path], statement: str, form: Format, target: Path) -> None:
    doing = "read"
    try:
        rows = query(files, statement)
        doing = f"written as {form.value}"
        if form is Format.PARQUET:
            rows.write_parquet(target)
            return
        with target.open("w", encoding="utf-8", errors="backslashreplace") as file:
            write_frame(rows, form, file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UsageError(f"the rows cannot be {doing}: {first}", fix=_FIX) from error


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer.read()))
