"""SQL over campaigns by DuckDB: the tables of an export as views, all files' rows in each.

DuckDB reads them from Parquet in a folder of its own (it takes polars' frames only with pyarrow), and may read nothing
else: no other file, no network, no extension. Only a query is taken, since it stands in a COPY.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from tare.errors import UsageError
from tare.report.formats import parquet
from tare.report.formats.columns import COLUMNS
from tare.report.formats.extras import load
from tare.report.formats.table_frames import whole
from tare.report.formats.tables import CampaignTable
from tare.store import read_store

#: DuckDB's memory; what is larger goes to its folder.
_MEMORY = "2GB"


def views() -> dict[str, CampaignTable]:
    """The tables by the name that they have in SQL, where a hyphen is a minus."""
    return {table.value.replace("-", "_"): table for table in COLUMNS}


def query(files: Sequence[Path], statement: str) -> pl.DataFrame:
    """The rows of a query. Raises `TareError` for what is no query, or cannot be read."""
    duckdb = load("duckdb", "tare sql")
    named = {name: table for name, table in views().items() if re.search(rf"\b{name}\b", statement, re.IGNORECASE)}
    with tempfile.TemporaryDirectory(prefix="tare-sql-") as place:
        folder = Path(place)
        for number, file in enumerate(files):
            with read_store(file) as store, store.snapshot():
                for name, table in named.items():
                    with (folder / f"{name}-{number}.parquet").open("wb") as out:
                        parquet.write(whole(store, table), table, out, campaign=store.record.id)
        out_file = folder / "result.parquet"
        with duckdb.connect(":memory:") as connection:
            for setting in _settings(folder):
                connection.execute(setting)
            for name in named:
                pieces = [f"{_quoted(folder / f'{name}-{number}.parquet')}" for number in range(len(files))]
                connection.execute(f"CREATE VIEW {name} AS FROM read_parquet([{', '.join(pieces)}])")
            _run(duckdb, connection, statement, out_file)
        return pl.read_parquet(out_file)


def _settings(folder: Path) -> Iterator[str]:
    yield f"SET memory_limit = '{_MEMORY}'"
    yield f"SET temp_directory = {_quoted(folder / 'spill')}"
    yield "SET autoinstall_known_extensions = false"
    yield "SET autoload_known_extensions = false"
    yield f"SET allowed_directories = [{_quoted(folder)}]"
    yield "SET enable_external_access = false"
    yield "SET lock_configuration = true"


def _run(duckdb: Any, connection: Any, statement: str, out: Path) -> None:
    text = statement.strip().rstrip(";")
    try:
        # A comment at the query's end ends with its line.
        connection.execute(f"COPY (\n{text}\n) TO {_quoted(out)} (FORMAT parquet)")
    except duckdb.Error as error:
        first = str(error).strip().splitlines()[0]
        if first.endswith(os.strerror(errno.EMFILE)):  # every campaign is a file or more
            raise OSError(errno.EMFILE, first) from error
        raise UsageError(f"the query fails: {first}", fix=f"tables: {', '.join(views())}; docs/exports.md") from error


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
