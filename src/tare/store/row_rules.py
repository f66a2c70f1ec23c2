"""Definitions of all columns, with their valid values. The rows of a file are checked only here.

SQLite accepts any value in any column, and its constraints bind only programs that respect them. A file from elsewhere
may have a text as a time, or an arm that does not exist.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tare.store.limits import LAST_MOMENT, MAX, MAX_ROWS

_BATCH = 100_000
#: Above any share, and any load.
_MAX_REAL = 1e9
_LAST = 2**31 - 2


class BrokenError(ValueError):
    """Content that no tare writes, in a few words; `tare.store.connection.translated` adds the file."""


class UnknownError(BrokenError):
    """Content that this tare does not accept, and a later tare may."""


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """Valid values of a column; without limits, all values of its type.

    Missing values are excluded by a constraint of the tables, which SQLite's quick_check has verified before
    (`tare.store.connection`).
    """

    kind: type[pl.DataType]
    bounds: tuple[float, float] | None = None
    magnitude: tuple[float, float] | None = None  # Limits of the absolute value, unless it is zero or infinite.


_CODE = ColumnRule(pl.UInt32)  # An index into the record's names, which `named` checks.
_NUMBER = ColumnRule(pl.Int32, (0, _LAST))
_COUNT = ColumnRule(pl.Int64, (0, MAX))
_COUNTER = ColumnRule(pl.Int64)
_MOMENT = ColumnRule(pl.Float64, (0, LAST_MOMENT))
_REAL = ColumnRule(pl.Float64, (-_MAX_REAL, _MAX_REAL))
#: Missing for a NaN, which SQLite cannot store. The limits apply to values other than zero and infinity.
_FIGURE = ColumnRule(pl.Float64, magnitude=(1e-30, 1e30))
_TEXT = ColumnRule(pl.String)
_KINDS: Mapping[ColumnRule, str] = {
    _CODE: "workload arm metric",
    _NUMBER: "block round position cpu thing",
    _COUNT: "trial seq tick start_ns wall_ns cpu_ns daemon_cpu_ns at_ns memory_bytes footprint repeat lost known"
    " surface task",
    _COUNTER: "clock_offset_ns clock_offset_error_ns late_ns own_ns tare_ns client_ns daemons_ns kernel_ns"
    " cpu_pressure_us memory_pressure_us io_pressure_us memory_available swapped_in swapped_out disk_read_bytes"
    " disk_written_bytes disk_busy_ms net_received_bytes net_sent_bytes user_ms nice_ms system_ms idle_ms"
    " iowait_ms irq_ms softirq_ms steal_ms run_ns throttled throttled_ns total pid filters uid gid reachable"
    " threads",
    _MOMENT: "started ended at began",
    _REAL: "steal pressure load clock_rate_low clock_rate_high",
    _FIGURE: "value",
    ColumnRule(pl.Float64): "seconds",  # `tare.store.footprint_rows` refuses invalid values.
    ColumnRule(pl.Boolean): "first readable counted no_new_privs in_kernel",
    _TEXT: "status reason level text boot name scope platform phase workload_name kernel program role seccomp unread"
    " label outcome answer path host kind detail",
}
#: By the name in queries. A name has one meaning in all tables.
COLUMNS: Mapping[str, ColumnRule] = {name: column for column, names in _KINDS.items() for name in names.split()}


def holds(name: str, value: int | float | None) -> bool:
    """Return True if a file with this number in a column can be read again."""
    column = COLUMNS[name]
    if value is None:
        return True
    if isinstance(value, int):
        least, most = column.bounds or (-MAX - 1, MAX)
        return least <= value <= most
    if column.magnitude is not None:
        least, most = column.magnitude
        return value == 0 or not math.isfinite(value) or least <= abs(value) <= most
    least, most = column.bounds or (-math.inf, math.inf)
    return least <= value <= most


def frame(db: sqlite3.Connection, sql: str, values: Sequence[object] = (), most: int = MAX_ROWS) -> pl.DataFrame:
    """Return all rows of a query, whose columns have names of `COLUMNS`. Raises `BrokenError`."""
    return pl.concat(frames(db, sql, values, most))


def frames(
    db: sqlite3.Connection, sql: str, values: Sequence[object] = (), most: int = MAX_ROWS
) -> Iterator[pl.DataFrame]:
    """Yield the rows of `frame` in batches, the first of which is empty.

    Batches avoid a million Python tuples at once. Raises `BrokenError` for more rows than ``most``, and for invalid
    values of a column.
    """
    cursor = db.execute(sql, values)
    schema = {column[0]: COLUMNS[column[0]].kind for column in cursor.description}
    yield pl.DataFrame(schema=schema)
    count = 0
    while rows := cursor.fetchmany(_BATCH):
        count += len(rows)
        if count > most:
            raise BrokenError(f"there are more than {most:,} rows of {', '.join(schema)}")
        try:
            batch = pl.DataFrame(rows, schema=schema, orient="row")
        except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
            raise BrokenError(f"a value in {', '.join(schema)} is not of its column's type") from None
        for series in batch:
            _check(series, COLUMNS[series.name])
        yield batch


def named(codes: pl.Series, names: Sequence[str]) -> pl.Series:
    """Return the names at these positions, as an Enum: a cell costs one to four bytes. Raises `BrokenError`."""
    require_below(codes, len(names))
    return pl.Series(codes.name, names, dtype=pl.Enum(list(dict.fromkeys(names)))).gather(codes)


def require_below(codes: pl.Series, count: int) -> None:
    """Raise `BrokenError` if a code has no name."""
    highest = codes.max()
    if isinstance(highest, int) and highest >= count:
        raise BrokenError(f"{codes.name} {highest} is not in the record, which names {count}")


def _check(series: pl.Series, column: ColumnRule) -> None:
    if column.magnitude is not None:
        size = series.abs()
        _require(size.filter((size > 0) & size.is_finite()), column.magnitude)
    if column.bounds is not None:
        _require(series, column.bounds)


def _require(series: pl.Series, bounds: tuple[float, float]) -> None:
    for end in (series.min(), series.max()):
        if isinstance(end, int | float) and not bounds[0] <= end <= bounds[1]:
            raise BrokenError(f"{series.name} is {end}")
