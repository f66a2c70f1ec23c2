"""From a campaign's rows to polars frames, in batches: a million samples never are a million Python tuples at once."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from tare.model import Arm
from tare.store.record import CampaignRecord

_BATCH = 100_000
#: Beyond every block's number.
_LAST = 2**31

_Schema = dict[str, type[pl.DataType]]
_KEY: _Schema = {"block": pl.Int32, "workload": pl.UInt32, "arm": pl.UInt32}
_SAMPLES = """
SELECT block, workload, arm, metric, round, value FROM sample JOIN trial ON trial.id = sample.trial
WHERE status = 'ok' AND block >= ? AND block < ? ORDER BY trial.id
"""
_TRIALS = """
SELECT seq, block, workload, arm, status, reason, started, wall_ns, cpu_ns, daemon_cpu_ns, steal, pressure, load
FROM trial ORDER BY seq, id
"""
_SLICES = """
SELECT block, workload, arm, slice.round, position, start_ns, slice.wall_ns, slice.cpu_ns, slice.daemon_cpu_ns, late_ns
FROM slice JOIN trial ON trial.id = slice.trial ORDER BY trial.id, slice.round
"""
_TICK: _Schema = {
    "tick": pl.Int64, "at": pl.Float64, "at_ns": pl.Int64, "first": pl.Boolean,
    **dict.fromkeys(
        (
            "own_ns", "tare_ns", "client_ns", "daemons_ns", "kernel_ns", "cpu_pressure_us", "memory_pressure_us",
            "io_pressure_us", "memory_available", "swapped_in", "swapped_out", "disk_read_bytes", "disk_written_bytes",
            "disk_busy_ms", "net_received_bytes", "net_sent_bytes",
        ),
        pl.Int64,
    ),
}  # fmt: skip
_TICK_CPU: _Schema = {
    "tick": pl.Int64, "cpu": pl.Int32,
    **dict.fromkeys(
        (
            "user_ms", "nice_ms", "system_ms", "idle_ms", "iowait_ms", "irq_ms", "softirq_ms", "steal_ms", "run_ns",
            "tare_ns",
        ),
        pl.Int64,
    ),
}  # fmt: skip
_TICK_INSTANCE: _Schema = {
    "tick": pl.Int64, "arm": pl.UInt32,
    **dict.fromkeys(("cpu_ns", "memory_bytes", "throttled", "throttled_ns"), pl.Int64),
}  # fmt: skip
_ROWS = """
SELECT seq, block, workload, arm, status, reason, started, wall_ns, cpu_ns, daemon_cpu_ns, steal, pressure, load,
    metric, round, value
FROM trial LEFT JOIN sample ON trial.id = sample.trial ORDER BY seq, trial.id, metric, round
"""


@dataclass(frozen=True, slots=True)
class Names:
    """What the small integers of a file stand for: the position in each list."""

    workloads: tuple[str, ...]
    arms: tuple[Arm, ...]
    metrics: tuple[tuple[str, str], ...]  # workload, metric

    @classmethod
    def of(cls, record: CampaignRecord) -> Names:
        """The names that a record tells."""
        return cls(
            tuple(workload.name for workload in record.workloads),
            tuple(record.all_arms()),
            tuple((workload.name, metric.name) for workload in record.workloads for metric in workload.metrics),
        )


def samples(db: sqlite3.Connection, names: Names, first: int = 0, end: int | None = None) -> pl.DataFrame:
    """block, workload, platform, replica, metric, round, value; of trials that ended ok, in blocks of this range."""
    schema: _Schema = {**_KEY, "metric": pl.UInt32, "round": pl.Int32, "value": pl.Float64}
    frame = _query(db, _SAMPLES, schema, (first, _LAST if end is None else end))
    metric = _named(frame["metric"], [name for _, name in names.metrics])
    # A NaN has no form in SQLite: it is kept as NULL, and comes back as what it was.
    value = frame["value"].fill_null(float("nan"))
    return (
        _with_names(frame.drop("metric", "value"), names)
        .with_columns(metric, value)
        .select("block", "workload", "platform", "replica", "metric", "round", "value")
    )


def trials(db: sqlite3.Connection, names: Names) -> pl.DataFrame:
    """seq, block, workload, platform, replica, status, reason, and what the host saw of each trial."""
    schema: _Schema = {"seq": pl.Int64, **_KEY, "status": pl.String, "reason": pl.String}
    schema |= dict.fromkeys(("wall_ns", "cpu_ns", "daemon_cpu_ns"), pl.Int64)
    schema |= dict.fromkeys(("started", "steal", "pressure", "load"), pl.Float64)
    return _with_names(_query(db, _TRIALS, schema), names)


def slices(db: sqlite3.Connection, names: Names) -> pl.DataFrame:
    """block, workload, platform, replica, round, position, and the host's times of each slice in ns."""
    schema: _Schema = {**_KEY, "round": pl.Int32, "position": pl.Int32}
    schema |= dict.fromkeys(("start_ns", "wall_ns", "cpu_ns", "daemon_cpu_ns", "late_ns"), pl.Int64)
    return _with_names(_query(db, _SLICES, schema), names)


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What the host was doing while a campaign ran, as counters: windows are differences of neighbouring ticks.

    ``host``: a row a tick; ``cpus``: a row a tick and CPU; ``instances``: a row a tick and live instance, with
    ``platform`` and ``replica``. Columns and units are those of `tare.model.Tick` and its parts.
    """

    host: pl.DataFrame
    cpus: pl.DataFrame
    instances: pl.DataFrame


def telemetry(db: sqlite3.Connection, names: Names, *, there: bool) -> Telemetry:
    """All ticks in order; empty frames where the file is of a version without (``there`` is false)."""

    def read(table: str, schema: _Schema, first: str, order: str) -> pl.DataFrame:
        if not there:
            return pl.DataFrame(schema=schema)
        columns = ", ".join([first, *list(schema)[1:]])
        return _query(db, f"SELECT {columns} FROM {table} ORDER BY {order}", schema)  # noqa: S608 (names of ours)

    instances = read("tick_instance", _TICK_INSTANCE, "tick", "tick, arm")
    return Telemetry(
        read("tick", _TICK, "id AS tick", "id"),
        read("tick_cpu", _TICK_CPU, "tick", "tick, cpu"),
        _with_names(instances, names),
    )


def rows(db: sqlite3.Connection, names: Names) -> Iterator[dict[str, object]]:
    """Every trial with its samples, a row each, as they come from the file."""
    cursor = db.execute(_ROWS)
    columns = [column[0] for column in cursor.description]
    for values in cursor:
        row = dict(zip(columns, values, strict=True))
        arm = names.arms[row.pop("arm")]
        row |= {"workload": names.workloads[row["workload"]], "platform": arm.platform, "replica": arm.replica}
        if row["metric"] is not None:
            row["metric"] = names.metrics[row["metric"]][1]
            row["value"] = math.nan if row["value"] is None else row["value"]
        yield row


def _query(db: sqlite3.Connection, sql: str, schema: _Schema, values: Sequence[int] = ()) -> pl.DataFrame:
    cursor = db.execute(sql, values)
    columns = [column[0] for column in cursor.description]
    ordered = {name: schema[name] for name in columns}
    parts = [pl.DataFrame(schema=ordered)]
    while rows := cursor.fetchmany(_BATCH):
        parts.append(pl.DataFrame(rows, schema=ordered, orient="row"))
    return pl.concat(parts)


def _named(codes: pl.Series, names: Sequence[str]) -> pl.Series:
    """The names at these positions, as an Enum: a cell costs a byte or four."""
    return pl.Series(codes.name, names, dtype=pl.Enum(list(dict.fromkeys(names)))).gather(codes)


def _with_names(frame: pl.DataFrame, names: Names) -> pl.DataFrame:
    """Replace the codes of arm and (where there is one) of workload by platform, replica and workload, in place."""
    platform = _named(frame["arm"], [arm.platform for arm in names.arms]).alias("platform")
    replica = pl.Series("replica", [arm.replica for arm in names.arms], dtype=pl.Int8).gather(frame["arm"])
    order = [name for column in frame.columns for name in (("platform", "replica") if column == "arm" else (column,))]
    frame = frame.with_columns(platform, replica)
    if "workload" in frame.columns:
        frame = frame.with_columns(_named(frame["workload"], names.workloads))
    return frame.select(order)
