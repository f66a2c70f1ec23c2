"""What `tare sql` does: prints or writes the rows of a query over campaigns."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from tare.cli.console import emitting
from tare.outputs import written
from tare.report.formats.export import write_frame
from tare.report.formats.sql import query
from tare.report.formats.tables import Format


def show_query(files: Sequence[Path], statement: str, form: Format, output: Path | None) -> None:
    """Run the query and write its rows. ``output`` None: to standard output. Raises `TareError`."""
    rows = query(files, statement)
    if form is Format.PARQUET and output is not None:
        with written(output, "wb", new=True) as out:
            rows.write_parquet(out)
        return
    with contextlib.ExitStack() as opened:
        target = opened.enter_context(emitting() if output is None else written(output, new=True))
        write_frame(rows, form, target)
