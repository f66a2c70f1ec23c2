"""Filling the catalogue: a campaign's file as rows, once by its id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import tare
from tare.analysis.comparisons.merged_hosts import facts_of
from tare.analysis.comparisons.sides import Way
from tare.analysis.comparisons.summaries import summary
from tare.analysis.comparisons.thresholds import Thresholds
from tare.catalogue.database import statement
from tare.errors import StoreError
from tare.report.formats.columns import schema
from tare.report.formats.table_frames import whole
from tare.report.formats.tables import CampaignTable
from tare.safe_text import encodable
from tare.store import Store

_WAYS = (Way.RELATIVE, Way.ABSOLUTE)


class Pushed(StrEnum):
    """The outcome of a push."""

    ADDED = "added"
    UPDATED = "updated"  # the file has more trials than the catalogue had
    THERE = "there"  # already, with as many trials


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign as the catalogue takes it: a row, and the rows of its tables with their columns."""

    row: Mapping[str, Any]
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]


def campaign_of(store: Store, host: str) -> Campaign:
    """Read a campaign, in one snapshot. Raises `StoreError`."""
    with store.snapshot():
        record = store.record
        results = whole(store, CampaignTable.RESULTS)
        series = []
        for way in _WAYS:
            figures = summary(store, Thresholds(), absolute=way is Way.ABSOLUTE, every=True)
            series += [
                (record.id, *names, place, way.value, side.mean, side.logs.tolist())
                for place, (names, side) in enumerate(figures.sides.items())
                if side.mean is not None
            ]
        done, segments = store.done(), store.segments()
        row = {
            "id": record.id,
            "host": host,
            "file": encodable(store.name),
            "created": record.created,
            "seconds": sum(segment.seconds for segment in segments),
            "status": store.status.value,
            "profile": record.profile,
            "baseline": record.baseline,
            "design": record.design.value,
            "blocks": len({key.block for key in done}),
            "trials": len(done),
            "tare_version": record.tare_version,
            "pushed_by": tare.__version__,
            "boots": sorted({segment.boot for segment in segments if segment.boot is not None}),
            "record": store.record_text,
        }
    facts = [(record.id, name, value) for name, value in facts_of(record).items()]
    platforms = [(record.id, platform.name, platform.title, platform.version) for platform in record.platforms]
    return Campaign(
        row,
        {
            "fact": (("campaign", "name", "value"), facts),
            "platform": (("campaign", "name", "title", "version"), platforms),
            "figure": (tuple(schema(CampaignTable.RESULTS)), results.rows()),
            "series": (("campaign", "platform", "workload", "metric", "place", "way", "mean", "logs"), series),
        },
    )


def push(connection: Any, campaign: Campaign) -> Pushed:
    """Add a campaign, or bring it up to its file, in the connection's transaction.

    Raises `StoreError` where another campaign has its id, or it is another host's there, or the catalogue knows more
    of it than the file.
    """
    row = campaign.row
    connection.execute(statement("lock_campaign"), {"id": row["id"]})
    known = connection.execute(statement("campaign"), {"id": row["id"]}).fetchone()
    outcome = Pushed.ADDED
    if known is not None:
        host, trials, record = known
        _require_same(row, host, record)
        if trials == row["trials"]:
            return Pushed.THERE
        if trials > row["trials"]:
            raise StoreError(
                f"{row['file']} has {row['trials']} trials, and the catalogue has {trials} of that campaign",
                fix="push the file that went on",
            )
        connection.execute(statement("remove_campaign"), {"id": row["id"]})
        outcome = Pushed.UPDATED
    connection.execute(statement("add_campaign"), {name: _storable(value) for name, value in row.items()})
    with connection.cursor() as cursor:
        for table, (columns, rows) in campaign.tables.items():
            # Names of our own tables and columns.
            with cursor.copy(f"COPY tare.{table} ({', '.join(columns)}) FROM STDIN".encode()) as copy:
                for values in rows:
                    copy.write_row(_storables(values))
    return outcome


def _require_same(row: Mapping[str, Any], host: str, record: str) -> None:
    if record != _storable(row["record"]):
        raise StoreError(
            f"{row['file']}: the catalogue has another record of that campaign (a copy that was made to be shared?)",
            fix="push the file that tare run wrote",
        )
    if host != row["host"]:
        raise StoreError(
            f"{row['file']}: the catalogue has that campaign as host {host}'s, and not {row['host']}'s",
            fix=f"push it as {host}'s: --host",
        )


def _storables(values: Iterable[Any]) -> list[Any]:
    return [_storable(value) for value in values]


def _storable(value: Any) -> Any:
    """Return a value as PostgreSQL can store it: no text has a NUL."""
    if isinstance(value, str):
        return encodable(value).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return value
