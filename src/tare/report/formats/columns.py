"""The tables of an export: their columns with type, unit and meaning. docs/exports.md and Parquet's metadata are of it.

`tests/report/test_tables.py` holds every table against this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from tare.report.formats.tables import CampaignTable
from tare.report.model import BoundReport, EffectReport, PlatformReport, ResultReport

#: For a column whose unit is in another column of its row.
OF_ROW = "see unit"


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """A column; ``unit`` "" where it has none."""

    name: str
    dtype: type[pl.DataType]
    meaning: str
    unit: str = ""


def _text(name: str, meaning: str) -> ExportColumn:
    return ExportColumn(name, pl.String, meaning)


def _whole(name: str, meaning: str, unit: str = "") -> ExportColumn:
    return ExportColumn(name, pl.Int64, meaning, unit)


def _real(name: str, meaning: str, unit: str = "") -> ExportColumn:
    return ExportColumn(name, pl.Float64, meaning, unit)


_CAMPAIGN = _text("campaign", "the campaign's UUID")
_KEY = (
    _whole("block", "number of the block, from 0"),
    _text("workload", "the workload's name"),
    _text("platform", "the platform's name"),
    _whole("replica", "0, or 1 for the second arm of the baseline"),
)
_END = (
    _text("status", "how the trial ended: ok, failed, unsupported"),
    _text("reason", "why it is not ok"),
)
_SEEN = (
    _whole("seq", "place of the trial in the schedule, from 0"),
    _real("started", "when the trial began, since 1970 in UTC", "s"),
    _whole("wall_ns", "time that the trial took", "ns"),
    _whole("cpu_ns", "CPU time of the instance's control group", "ns"),
    _whole("daemon_cpu_ns", "CPU time of the platform's shared daemons meanwhile", "ns"),
    _real("steal", "share of the CPUs' time that the hypervisor took"),
    _real("pressure", "share of time in which some task waited for a CPU"),
    _real("load", "the host's load before the trial"),
)
_CLOCK = (
    _whole("clock_offset_ns", "how far the clock inside was ahead of the host's when the trial began", "ns"),
    _whole("clock_offset_error_ns", "how well that is known, either way", "ns"),
    _real("clock_rate_low", "how much faster than the host's it ran, at least, a fraction; null: it timed nothing"),
    _real("clock_rate_high", "the same, at most"),
)
_TICK = _whole("tick", "number of the reading")


def _of_model(name: str, dtype: type[pl.DataType], unit: str = "", model: type = PlatformReport) -> ExportColumn:
    description = model.model_fields[name].description or ""  # type: ignore[attr-defined]
    return ExportColumn(name, dtype, " ".join(description.replace("`", "").split()).rstrip("."), unit)


def _of_effect(field: str, dtype: type[pl.DataType], unit: str = "", *, name: str = "") -> ExportColumn:
    return replace(_of_model(field, dtype, unit, EffectReport), name=name or field)


def _of_bound(field: str, dtype: type[pl.DataType], *, name: str) -> ExportColumn:
    return replace(_of_model(field, dtype, "", BoundReport), name=name)


_RESULTS = (
    _CAMPAIGN,
    _of_model("workload", pl.String, model=ResultReport),
    _of_model("family", pl.String, model=ResultReport),
    _of_model("metric", pl.String, model=ResultReport),
    _of_model("headline", pl.Boolean, model=ResultReport),
    _of_model("unit", pl.String, model=ResultReport),
    _of_model("direction", pl.String, model=ResultReport),
    _text("baseline", "the platform that others are compared with"),
    _of_model("margin_percent", pl.Float64, "%", ResultReport),
    _text("platform", "the platform's name"),
    *(_of_model(f"n_{name}", pl.Int64) for name in ("blocks", "ok", "failed", "unsupported", "contaminated")),
    *(_of_model(name, pl.Float64, OF_ROW) for name in ("mean", "sd", "median")),
    *(_of_model(name, pl.Float64) for name in ("ratio", "ratio_low", "ratio_high")),
    *(_of_model(name, pl.Float64, "%") for name in ("op_percent", "op_low_percent", "op_high_percent")),
    _of_effect("times", pl.Float64),
    _of_effect("low", pl.Float64, name="times_low"),
    _of_effect("high", pl.Float64, name="times_high"),
    _of_effect("level", pl.Float64, name="interval_level"),
    _of_effect("whole_blocks", pl.Boolean),
    _of_effect("value", pl.Float64, OF_ROW),
    _of_bound("kind", pl.String, name="bound"),
    _of_bound("low", pl.Float64, name="bound_low"),
    _of_bound("high", pl.Float64, name="bound_high"),
    *(_of_model(name, pl.Float64, "see amount_unit") for name in ("amount", "amount_low", "amount_high")),
    _of_model("amount_unit", pl.String),
    _of_model("verdict", pl.String),
    _of_model("verdict_reason", pl.String),
    _of_model("verdict_text", pl.String),
    _of_model("p_adjusted", pl.Float64),
    _of_model("survives_holm", pl.Boolean),
)

COLUMNS: Mapping[CampaignTable, Sequence[ExportColumn]] = {
    CampaignTable.RESULTS: _RESULTS,
    CampaignTable.SAMPLES: (
        _CAMPAIGN,
        *_KEY,
        *_END,
        *_SEEN,
        _text("metric", "the metric's name; null for a trial without samples"),
        _text("unit", "the metric's unit"),
        _text("direction", "which way is better: higher, lower"),
        _whole("round", "number of the round within the trial, from 0"),
        _real("value", "the sample", OF_ROW),
    ),
    CampaignTable.TRIALS: (
        _CAMPAIGN,
        *_KEY,
        *_END,
        *_SEEN,
        *_CLOCK,
        _real("turn_s", "work since the trial before it ended: turns add up to the campaign", "s"),
    ),
    CampaignTable.OUTPUT: (
        _CAMPAIGN,
        *_KEY,
        *_END,
        _text("name", "which output of the tool"),
        _whole("bytes", "its full length", "B"),
        _text("text", "the part that is stored"),
    ),
    CampaignTable.HOST: (
        _CAMPAIGN,
        _TICK,
        _real("at", "time of the reading, since 1970 in UTC", "s"),
        _whole("at_ns", "the same by the host's monotonic clock", "ns"),
        ExportColumn("first", pl.Boolean, "whether no window ends here"),
        _whole("own_ns", "CPU time of the harness, a counter", "ns"),
        _whole("tare_ns", "CPU time in tare's control groups, a counter", "ns"),
        _whole("client_ns", "of that, the client's", "ns"),
        _whole("daemons_ns", "CPU time of shared daemons, a counter", "ns"),
        _whole("kernel_ns", "CPU time of the kernel's threads, a counter", "ns"),
        _whole("cpu_pressure_us", "time in which some task waited for a CPU, a counter", "µs"),
        _whole("memory_pressure_us", "the same for memory", "µs"),
        _whole("io_pressure_us", "the same for disks", "µs"),
        _whole("memory_available", "memory available", "B"),
        _whole("swapped_in", "pages read from swap, a counter", "pages"),
        _whole("swapped_out", "pages written to swap, a counter", "pages"),
        _whole("disk_read_bytes", "read from the disk below TARE_HOME, a counter", "B"),
        _whole("disk_written_bytes", "written to it, a counter", "B"),
        _whole("disk_busy_ms", "time in which it was busy, a counter", "ms"),
        _whole("net_received_bytes", "received by the campaign's bridge, a counter", "B"),
        _whole("net_sent_bytes", "sent by it, a counter", "B"),
    ),
    CampaignTable.CPUS: (
        _CAMPAIGN,
        _TICK,
        _whole("cpu", "number of the host's CPU"),
        *(
            _whole(f"{name}_ms", f"time in {name}, a counter", "ms")
            for name in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
        ),
        _whole("run_ns", "time in which tasks ran on it, a counter", "ns"),
        _whole("tare_ns", "of that, tasks of tare's control groups", "ns"),
    ),
    CampaignTable.INSTANCES: (
        _CAMPAIGN,
        _TICK,
        _text("platform", "the platform's name"),
        _whole("replica", "0, or 1 for the second arm of the baseline"),
        _whole("cpu_ns", "CPU time of the instance, a counter", "ns"),
        _whole("memory_bytes", "memory of its control group", "B"),
        _whole("throttled", "periods in which it was throttled, a counter"),
        _whole("throttled_ns", "time in which it was, a counter", "ns"),
    ),
    CampaignTable.FOOTPRINTS: (
        _CAMPAIGN,
        _text("level", "what was counted: system calls, functions, lines, stacks"),
        _text("scope", "whose: the instance's own, or everybody's"),
        _text("platform", "the platform's name, or idle"),
        _text("phase", "start, work or idle"),
        _text("workload", "the workload's name; null for a start and for the idle host"),
        _whole("repeat", "number of the repeat, from 0"),
        _real("seconds", "how long it was counted", "s"),
        _text("thing", "the call, function, line or stack"),
        _whole("hits", "how often it ran"),
    ),
    CampaignTable.SURFACES: (
        _CAMPAIGN,
        _text("platform", "the platform's name"),
        _real("at", "when it was read, since 1970 in UTC", "s"),
        _text("kernel", "the kernel's release"),
        _text("call", "the system call"),
        _text("outcome", "what becomes of it"),
        _text("answers", "what filters may answer"),
        ExportColumn("unread", pl.Boolean, "some filters could not be read"),
    ),
}


def schema(table: CampaignTable) -> dict[str, type[pl.DataType]]:
    """The types of a table's columns, in order."""
    return {column.name: column.dtype for column in COLUMNS[table]}
