"""The tables of a campaign as frames, in pieces where they may be large."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import polars as pl

from tare.footprint_model import Footprint, Surface
from tare.model import Arm, TrialKey
from tare.report.campaign.report_builder import timed
from tare.report.formats.columns import COLUMNS, schema
from tare.report.formats.selection import EVERYTHING, Selection
from tare.report.formats.tables import CampaignTable
from tare.report.model import PlatformReport, Report
from tare.store import Store

Row = dict[str, object]
_HITS = {"thing": pl.String, "hits": pl.Int64}
#: Rows of a piece.
_ROWS = 50_000


def frames(store: Store, table: CampaignTable, selection: Selection = EVERYTHING) -> Iterator[pl.DataFrame]:
    """The table's pieces, each with all columns of `COLUMNS`; of a table without rows there may be none."""
    return (selection.frame(frame) for frame in _frames(store, table))


def _frames(store: Store, table: CampaignTable) -> Iterator[pl.DataFrame]:
    campaign = store.record.id
    if table is CampaignTable.RESULTS:
        yield results_frame(timed(store, store.samples()))
    elif table is CampaignTable.SAMPLES:
        yield from _batches(rows(store))
    elif table is CampaignTable.TRIALS:
        yield _of(campaign, store.trials()).select(names(table))
    elif table is CampaignTable.OUTPUT:
        yield from (_output_frame(store, trial) for trial in store.trials().iter_rows(named=True))
    elif table is CampaignTable.FOOTPRINTS:
        yield from (_footprint_frame(campaign, footprint) for footprint in store.footprints())
    elif table is CampaignTable.SURFACES:
        yield from (_surface_frame(campaign, surface) for surface in store.surfaces())
    else:
        telemetry = store.telemetry()
        parts = {
            CampaignTable.HOST: telemetry.host,
            CampaignTable.CPUS: telemetry.cpus,
            CampaignTable.INSTANCES: telemetry.instances,
        }
        yield _of(campaign, parts[table])


def whole(store: Store, table: CampaignTable, selection: Selection = EVERYTHING) -> pl.DataFrame:
    """The table in one piece, with the types of `COLUMNS`."""
    kinds = schema(table)
    pieces = [piece.cast(dict(kinds)) for piece in frames(store, table, selection)]  # type: ignore[arg-type]
    return pl.concat(pieces) if pieces else pl.DataFrame(schema=kinds)


def names(table: CampaignTable) -> list[str]:
    """The columns of a table, in order."""
    return [column.name for column in COLUMNS[table]]


def rows(store: Store) -> Iterator[Row]:
    """The rows of the samples, in order of the schedule: one a sample, and one a trial without any."""
    facts = {
        (workload.name, metric.name): (metric.unit, metric.direction.value)
        for workload in store.record.workloads
        for metric in workload.metrics
    }
    columns = names(CampaignTable.SAMPLES)
    for row in store.rows():
        unit, direction = facts.get((str(row["workload"]), str(row["metric"])), (None, None))
        row |= {"campaign": store.record.id, "unit": unit, "direction": direction}
        yield {column: row[column] for column in columns}


def results_frame(report: Report) -> pl.DataFrame:
    """A row a platform and metric."""
    table = [
        {
            **result.model_dump(mode="json", exclude={"platforms"}),
            **place.model_dump(mode="json", exclude={"findings", "cautions", "effect"}),
            **_effect(place),
            "campaign": report.id,
            "baseline": report.baseline,
        }
        for result in report.results
        for place in result.platforms
    ]
    kinds = schema(CampaignTable.RESULTS)
    return pl.DataFrame([{name: row[name] for name in kinds} for row in table], schema=kinds)


def _effect(place: PlatformReport) -> Row:
    """The columns of the figure that is shown; empty ones where there is none."""
    shown = place.effect
    bound = None if shown is None else shown.bound
    return {
        "times": shown and shown.times,
        "times_low": shown and shown.low,
        "times_high": shown and shown.high,
        "interval_level": shown and shown.level,
        "whole_blocks": shown and shown.whole_blocks,
        "value": shown and shown.value,
        "bound": bound and bound.kind.value,
        "bound_low": bound and bound.low,
        "bound_high": bound and bound.high,
    }


def _batches(table: Iterator[Row]) -> Iterator[pl.DataFrame]:
    kinds = schema(CampaignTable.SAMPLES)
    while batch := list(itertools.islice(table, _ROWS)):
        yield pl.DataFrame(batch, schema=kinds)


def _of(campaign: str, frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(pl.lit(campaign).alias("campaign"), pl.all())


def _output_frame(store: Store, trial: Row) -> pl.DataFrame:
    arm = Arm(str(trial["platform"]), int(str(trial["replica"])))
    outputs = store.outputs(TrialKey(int(str(trial["block"])), str(trial["workload"]), arm))
    kinds = schema(CampaignTable.OUTPUT)
    facts = {"campaign": store.record.id, **{name: value for name, value in trial.items() if name in kinds}}
    table = [
        {**facts, "name": name, "bytes": output.full_bytes, "text": output.data.decode(errors="replace")}
        for name, output in outputs.items()
    ]
    return pl.DataFrame(table, schema=kinds)


def _footprint_frame(campaign: str, footprint: Footprint) -> pl.DataFrame:
    facts = footprint.model_dump(mode="json", exclude={"hits"}) | {"campaign": campaign}
    hits = pl.DataFrame({"thing": list(footprint.hits), "hits": list(footprint.hits.values())}, schema=_HITS)
    columns = names(CampaignTable.FOOTPRINTS)
    return hits.with_columns(
        pl.lit(facts[name], dtype=pl.String if name == "workload" else None).alias(name)
        for name in columns
        if name in facts
    ).select(columns)


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
    return frame.with_columns(literals).select(names(CampaignTable.SURFACES))
