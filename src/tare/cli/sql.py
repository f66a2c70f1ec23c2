"""`tare sql`: prints or writes the rows of a query over campaigns."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tare.cli.console import emitting
from tare.errors import HostError, UsageError
from tare.host import own_limits, processes
from tare.outputs import written
from tare.report.formats.tables import Format

#: Somebody may wait for a query for long.
_LIMIT_S = 7 * 86_400.0
_CHILD = ("-P", "-m", "tare.report.formats.sql_child")


def show_query(
    files: Sequence[Path], statement: str, form: Format, output: Path | None, *, force: bool = False
) -> None:
    """Run the query and write its rows. ``output`` None: to standard output. Raises `TareError`."""
    with tempfile.TemporaryDirectory(prefix="tare-sql-") as folder:
        rows = Path(folder, "rows")
        _carry_out(files, statement, form, rows)
        if output is not None:
            with rows.open("rb") as source, written(output, "wb", new=not force) as target:
                shutil.copyfileobj(source, target)
            return
        with rows.open(encoding="utf-8", newline="") as text, emitting() as out:
            shutil.copyfileobj(text, out)


def _carry_out(files: Sequence[Path], statement: str, form: Format, rows: Path) -> None:
    """Have a process of its own write the rows, which an interrupt ends at once. Raises `TareError`."""
    error = rows.with_name("error")
    asked = {
        "files": [str(file.absolute()) for file in files],
        "statement": statement,
        "form": form.value,
        "rows": str(rows),
        "error": str(error),
    }
    within = processes.WITH_TARE if processes.find(processes.WITH_TARE[0]) else ()
    done = processes.run(
        [*within, sys.executable, *_CHILD],
        stdin=json.dumps(asked).encode(),
        time_limit_s=_LIMIT_S,
        env=processes.own_environment(),
    )
    if error.exists():
        raise UsageError(**json.loads(error.read_bytes()))
    if done.code != 0:
        if os.strerror(errno.EMFILE) in done.message:
            raise own_limits.no_files()
        how = f"was ended by signal {-done.code}" if done.code < 0 else f"ended with {done.code}: {done.message}"
        raise HostError(f"the query's process {how}", fix="ask for less at once")
