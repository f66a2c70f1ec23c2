"""Conversion of a campaign's rows to polars frames, with names in place of codes."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from tare.model import Arm, Status, TrialKey
from tare.records import LINE_END
from tare.store.limits import MAX_SAMPLES, MAX_TICKS
from tare.store.protocol import Telemetry
from tare.store.record import CampaignRecord
from tare.store.row_rules import BrokenError, frame, frames, named, require_below

#: Above every block's number.
_LAST = 2**31
_KEY = ("block", "workload", "arm")

_SAMPLES = """
SELECT block, workload, arm, metric, round, value FROM sample JOIN trial ON trial.id = sample.trial
WHERE status = 'ok' AND block >= ? AND block < ? ORDER BY trial.id
"""
_TRIALS = """
SELECT seq, block, workload, arm, status, reason, started, wall_ns, cpu_ns, daemon_cpu_ns, steal, pressure, load
FROM trial ORDER BY seq, id
"""
_CLOCKS = """
SELECT block, workload, arm, offset_ns AS clock_offset_ns, offset_error_ns AS clock_offset_error_ns,
    rate_low AS clock_rate_low, rate_high AS clock_rate_high
FROM inside_clock JOIN trial ON trial.id = inside_clock.trial
"""
_SLICES = """
SELECT block, workload, arm, slice.round, position, start_ns, slice.wall_ns, slice.cpu_ns, slice.daemon_cpu_ns, late_ns
FROM slice JOIN trial ON trial.id = slice.trial ORDER BY trial.id, slice.round
"""
_TICKS = """
SELECT id AS tick, at, at_ns, first, own_ns, tare_ns, client_ns, daemons_ns, kernel_ns, cpu_pressure_us,
    memory_pressure_us, io_pressure_us, memory_available, swapped_in, swapped_out, disk_read_bytes, disk_written_bytes,
    disk_busy_ms, net_received_bytes, net_sent_bytes
FROM tick ORDER BY id
"""
_TICK_CPUS = """
SELECT tick, cpu, user_ms, nice_ms, system_ms, idle_ms, iowait_ms, irq_ms, softirq_ms, steal_ms, run_ns, tare_ns
FROM tick_cpu ORDER BY tick, cpu
"""
_TICK_INSTANCES = """
SELECT tick, arm, cpu_ns, memory_bytes, throttled, throttled_ns FROM tick_instance ORDER BY tick, arm
"""
_FACTS = """
SELECT id AS trial, seq, block, workload, arm, status, reason, started, wall_ns, cpu_ns, daemon_cpu_ns, steal, pressure,
    load
FROM trial
"""
_FIGURES = """
SELECT id AS trial, metric, round, value FROM trial LEFT JOIN sample ON id = trial ORDER BY seq, id, metric, round
"""


@dataclass(frozen=True, slots=True)
class Names:
    """Meanings of the small integers in a file: each is a position in one of these lists."""

    workloads: tuple[str, ...]
    arms: tuple[Arm, ...]
    metrics: tuple[tuple[str, str], ...]  # Workload, metric.

    @classmethod
    def of(cls, record: CampaignRecord) -> Names:
        """Return the meanings of a file's integers, from its record."""
        return cls(
            tuple(workload.name for workload in record.workloads),
            tuple(record.all_arms()),
            tuple((workload.name, metric.name) for workload in record.workloads for metric in workload.metrics),
        )


def samples(db: sqlite3.Connection, names: Names, first: int = 0, end: int | None = None) -> pl.DataFrame:
    """Return block, workload, platform, replica, metric, round, value of successful trials in blocks of this range."""
    coded = frame(db, _SAMPLES, (first, _LAST if end is None else end), MAX_SAMPLES)
    metric = named(coded["metric"], [name for _, name in names.metrics])
    # SQLite cannot store NaN, so it is stored as NULL and restored here.
    value = coded["value"].fill_null(float("nan"))
    return (
        _with_names(coded.drop("metric", "value"), names)
        .with_columns(metric, value)
        .select("block", "workload", "platform", "replica", "metric", "round", "value")
    )


def trials(db: sqlite3.Connection, names: Names) -> pl.DataFrame:
    """Return all trials: seq, block, workload, platform, replica, status, reason, and the host's observations.

    Raises `BrokenError` for a duplicate trial, or a contradictory status and reason.
    """
    coded = frame(db, _TRIALS)
    if coded.select(_KEY).is_duplicated().any():
        raise BrokenError("a trial appears twice")
    whole = pl.col("status").is_in([kind.value for kind in Status]) & (
        (pl.col("status") == Status.OK.value) == pl.col("reason").is_null()
    )
    if not coded.select(whole.all()).item():
        raise BrokenError("a trial has an unknown status, or no reason")
    return _with_names(coded.with_columns(pl.col("reason").str.replace_all(LINE_END, " ")), names)


def clocks(db: sqlite3.Connection, names: Names) -> pl.DataFrame:
    """Return block, workload, platform, replica, and the facts of the clock inside, of trials that it timed."""
    return _with_names(frame(db, _CLOCKS), names)


def with_clocks(timed: pl.DataFrame, inside: pl.DataFrame) -> pl.DataFrame:
    """Return all trials, with the facts of the clock inside if there are any."""
    return timed.join(inside, on=["block", "workload", "platform", "replica"], how="left", maintain_order="left")


def slices(db: sqlite3.Connection, names: Names) -> pl.DataFrame:
    """Return block, workload, platform, replica, round, position, and the host's times of each slice in ns."""
    return _with_names(frame(db, _SLICES, most=MAX_SAMPLES), names)


def keys(db: sqlite3.Connection, names: Names, table: Literal["schedule", "trial"]) -> list[TrialKey]:
    """Return the planned, or completed, trials in the order of the schedule."""
    coded = frame(db, f"SELECT block, workload, arm FROM {table} ORDER BY seq")  # noqa: S608 (a name of ours)
    require_below(coded["workload"], len(names.workloads))
    require_below(coded["arm"], len(names.arms))
    return [TrialKey(block, names.workloads[workload], names.arms[arm]) for block, workload, arm in coded.iter_rows()]


def telemetry(db: sqlite3.Connection, names: Names) -> Telemetry:
    """Return all ticks in order: one frame each for the host, its CPUs and the instances."""
    instances = frame(db, _TICK_INSTANCES, most=MAX_TICKS)
    return Telemetry(
        frame(db, _TICKS, most=MAX_TICKS), frame(db, _TICK_CPUS, most=MAX_TICKS), _with_names(instances, names)
    )


def rows(db: sqlite3.Connection, names: Names) -> Iterator[dict[str, object]]:
    """Yield every trial with its samples, one row each, streamed from the file."""
    coded = frame(db, _FACTS)
    facts = dict(zip(coded["trial"], _with_names(coded, names).drop("trial").iter_rows(named=True), strict=True))
    for batch in frames(db, _FIGURES, most=MAX_SAMPLES):
        require_below(batch["metric"], len(names.metrics))
        for trial, metric, number, value in batch.iter_rows():
            if metric is None:
                yield {**facts[trial], "metric": None, "round": None, "value": None}
                continue
            figure = math.nan if value is None else value
            yield {**facts[trial], "metric": names.metrics[metric][1], "round": number, "value": figure}


def _with_names(coded: pl.DataFrame, names: Names) -> pl.DataFrame:
    """Replace the codes of arm and (if present) workload by platform, replica and workload, in place."""
    platform = named(coded["arm"], [arm.platform for arm in names.arms]).alias("platform")
    replica = pl.Series("replica", [arm.replica for arm in names.arms], dtype=pl.Int8).gather(coded["arm"])
    order = [name for column in coded.columns for name in (("platform", "replica") if column == "arm" else (column,))]
    coded = coded.with_columns(platform, replica)
    if "workload" in coded.columns:
        coded = coded.with_columns(named(coded["workload"], names.workloads))
    return coded.select(order)
