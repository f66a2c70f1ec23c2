"""Exports every sample with the facts of its trial, as CSV or JSON lines, in batches: memory stays small.

Outputs of tools: a row per output. Telemetry: a row per tick; per tick and CPU; or per tick and instance.
Footprints: a row per call, function or line. Stacks: folded, for tools that draw flame graphs.
Surfaces: a row per platform and call.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

import polars as pl

from tare.footprint.model import Footprint, Level, Surface
from tare.model import Arm, TrialKey
from tare.report.footprint.build import exposures
from tare.report.footprint.flames import folded
from tare.report.formats.escape import FORMULA, spreadsheet
from tare.report.formats.tables import Format, Table
from tare.store import Store

Row = dict[str, object]
_HITS = {"thing": pl.String, "hits": pl.Int64}

COLUMNS = (
    "campaign", "block", "workload", "platform", "replica", "status", "reason", "seq", "started", "wall_ns", "cpu_ns",
    "daemon_cpu_ns", "steal", "pressure", "load", "metric", "unit", "direction", "round", "value",
)  # fmt: skip


FOOTPRINT_COLUMNS = (
    "campaign", "level", "scope", "platform", "phase", "workload", "repeat", "seconds", "thing", "hits",
)  # fmt: skip
OUTPUT_COLUMNS = (
    "campaign", "block", "workload", "platform", "replica", "status", "reason", "name", "bytes", "text",
)  # fmt: skip
SURFACE_COLUMNS = ("campaign", "platform", "at", "kernel", "call", "outcome", "answers", "unread")


def _guarded_frame(frame: pl.DataFrame) -> pl.DataFrame:
    names = (name for name, kind in frame.schema.items() if kind == pl.String or isinstance(kind, pl.Enum))
    texts = {name: pl.col(name).cast(pl.String) for name in names}
    return frame.with_columns(
        pl.when(text.str.slice(0, 1).is_in(FORMULA)).then(pl.lit("'") + text).otherwise(text).alias(name)
        for name, text in texts.items()
    )


def _csv(frame: pl.DataFrame, *, raw: bool, header: bool = True) -> str:
    return (frame if raw else _guarded_frame(frame)).write_csv(include_header=header)


def export_output(store: Store, form: Format, out: TextIO, *, raw: bool = False) -> int:
    """Write one row per raw output of a trial, ok or not, in order of the schedule; returns the number of rows.

    ``bytes``: its full length; ``text``: the part that is stored, with U+FFFD for bytes that are no UTF-8.
    """
    trials = store.trials().select(OUTPUT_COLUMNS[1:7]).iter_rows(named=True)
    return _write_frames((_output_frame(store, trial) for trial in trials), OUTPUT_COLUMNS, form, out, raw=raw)


def _output_frame(store: Store, trial: Row) -> pl.DataFrame:
    arm = Arm(str(trial["platform"]), int(str(trial["replica"])))
    outputs = store.outputs(TrialKey(int(str(trial["block"])), str(trial["workload"]), arm))
    facts = {"campaign": store.record.id, **trial}
    rows = [
        {**facts, "name": name, "bytes": output.full_bytes, "text": output.data.decode(errors="replace")}
        for name, output in outputs.items()
    ]
    texts = dict.fromkeys(OUTPUT_COLUMNS, pl.String) | dict.fromkeys(("block", "replica", "bytes"), pl.Int64)
    return pl.DataFrame(rows, schema=texts)


def export_telemetry(store: Store, table: Table, form: Format, out: TextIO, *, raw: bool = False) -> int:
    """Write a frame of the telemetry (`tare.store.Telemetry`); returns the number of rows."""
    whole = store.telemetry()
    frame = {Table.HOST: whole.host, Table.CPUS: whole.cpus, Table.INSTANCES: whole.instances}[table]
    frame = frame.select(pl.lit(store.record.id).alias("campaign"), pl.all())
    out.write(_csv(frame, raw=raw) if form is Format.CSV else frame.write_ndjson())
    return frame.height


def export_footprints(store: Store, form: Format, out: TextIO, *, raw: bool = False) -> int:
    """Write one row per item that ran in a footprint, also of the idle host; returns the number of rows.

    ``workload`` is empty (JSON lines: null) for a start and for the idle host. An item without a row did not run.
    """
    frames = (_footprint_frame(store.record.id, footprint) for footprint in store.footprints())
    return _write_frames(frames, FOOTPRINT_COLUMNS, form, out, raw=raw)


def export_surfaces(store: Store, form: Format, out: TextIO, *, raw: bool = False) -> int:
    """Write one row per reading of a platform and system call; returns the number of rows.

    ``answers``: what filters of the counted threads may answer, such as "errno 1", with " | " between; "allow" where it
    runs. ``unread``: some of these filters could not be read, so that more may be let through.
    """
    frames = (_surface_frame(store.record.id, surface) for surface in store.surfaces())
    return _write_frames(frames, SURFACE_COLUMNS, form, out, raw=raw)


def _write_frames(
    frames: Iterable[pl.DataFrame], columns: Sequence[str], form: Format, out: TextIO, *, raw: bool
) -> int:
    count = 0
    if form is Format.CSV:
        out.write(",".join(columns) + "\n")
    for frame in frames:
        out.write(_csv(frame, raw=raw, header=False) if form is Format.CSV else frame.write_ndjson())
        count += frame.height
    return count


def export_stacks(store: Store, out: TextIO) -> int:
    """Write one line per stack (`tare.report.footprint.flames.folded`), repeats pooled; returns the number of lines."""
    stacks = (footprint for footprint in store.footprints() if footprint.level is Level.STACKS)
    platforms = [store.record.baseline, *(platform.name for platform in store.record.platforms)]
    exposure = exposures(stacks, platforms).get(Level.STACKS)
    count = 0
    for line in folded(exposure) if exposure is not None else ():
        out.write(f"{line}\n")
        count += 1
    return count


def _footprint_frame(campaign: str, footprint: Footprint) -> pl.DataFrame:
    facts = footprint.model_dump(mode="json", exclude={"hits"}) | {"campaign": campaign}
    hits = pl.DataFrame({"thing": list(footprint.hits), "hits": list(footprint.hits.values())}, schema=_HITS)
    return hits.with_columns(
        pl.lit(facts[name], dtype=pl.String if name == "workload" else None).alias(name)
        for name in FOOTPRINT_COLUMNS
        if name in facts
    ).select(FOOTPRINT_COLUMNS)


def _surface_frame(campaign: str, surface: Surface) -> pl.DataFrame:
    calls = surface.calls or {}
    facts = {"campaign": campaign, "platform": surface.platform, "at": surface.at, "kernel": surface.kernel}
    columns = {
        "call": list(calls),
        "outcome": [call.value for call in calls.values()],
        "answers": [" | ".join(surface.answers(name)) for name in calls],
    }
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    literals = (pl.lit(value).alias(name) for name, value in (facts | {"unread": bool(surface.unread)}).items())
    return frame.with_columns(literals).select(SURFACE_COLUMNS)


def export(store: Store, form: Format, out: TextIO, *, raw: bool = False) -> int:
    """Write one row per sample, and one per trial without samples (so that failures are exported too).

    Returns the number of rows. CSV: empty where there is nothing. JSON lines: null; NaN and infinities, which JSON
    does not have, are the strings "nan", "inf" and "-inf". ``raw``: CSV's texts
    as they are, and not as `spreadsheet` makes them.
    """
    return _write_csv(store, out, raw=raw) if form is Format.CSV else _write_jsonl(store, out)


class _LineFeeds:
    """Rows whose last two characters end the line, written with a line feed alone."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, row: str) -> int:
        return self._out.write(row.removesuffix("\r\n") + "\n")


def _write_csv(store: Store, out: TextIO, *, raw: bool) -> int:
    # The writer quotes a carriage return only where it ends lines itself; bare, it would begin a row in a spreadsheet.
    writer = csv.writer(_LineFeeds(out), lineterminator="\r\n")
    writer.writerow(COLUMNS)
    count = 0
    for row in rows(store):
        writer.writerow(row.values() if raw else map(spreadsheet, row.values()))  # they come in the order of COLUMNS
        count += 1
    return count


def _write_jsonl(store: Store, out: TextIO) -> int:
    count = 0
    for row in rows(store):
        value = row["value"]
        if isinstance(value, float) and not math.isfinite(value):
            row["value"] = str(value)
        out.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
        count += 1
    return count


def rows(store: Store) -> Iterator[Row]:
    """The rows of an export, in order of the schedule."""
    facts = {
        (workload.name, metric.name): (metric.unit, metric.direction.value)
        for workload in store.record.workloads
        for metric in workload.metrics
    }
    for row in store.rows():
        unit, direction = facts.get((str(row["workload"]), str(row["metric"])), (None, None))
        row |= {"campaign": store.record.id, "unit": unit, "direction": direction}
        yield {column: row[column] for column in COLUMNS}
