"""Reading the catalogue: campaigns as `tare history` and `tare fleet report` take them from files.

Who fills a catalogue may be anybody: what comes out of it has the limits and the checks of a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from pydantic import ValidationError

from tare.analysis.comparisons.sides import MetricSide, Way
from tare.analysis.comparisons.summaries import Summary, wanted
from tare.analysis.comparisons.thresholds import Thresholds
from tare.catalogue.address import CatalogueAddress
from tare.catalogue.database import connected, require_tables, statement
from tare.errors import StoreError, UsageError, first_invalid
from tare.safe_text import encodable
from tare.store import CampaignRecord, known_part

#: Hosts that an error names.
_NAMED = 10
#: Campaigns that are read of one catalogue, and hosts.
MAX_CAMPAIGNS, MAX_HOSTS = 1_000, 20_000
#: Characters of a record, as of a file's; blocks of a figure; and figures of a campaign.
_MAX_RECORD, _MAX_BLOCKS, _MAX_SERIES = 1 << 24, 1_000_000, 100_000
#: Campaigns that are fetched at a time.
_ROWS = 50


def host_summaries(
    address: CatalogueAddress, host: str | None, thresholds: Thresholds, *, absolute: bool
) -> Iterator[tuple[str, Summary | str]]:
    """Read the campaigns of a host, the newest first: the name of each file, and its summary or the reason it has none.

    ``host``: None where the catalogue has only one. Raises `StoreError`, and `UsageError` for a host that is not there.
    """
    with connected(address, "tare history", read_only=True) as connection:
        require_tables(connection, address)
        chosen = _host(connection, address, host)
        way = Way.ABSOLUTE if absolute else Way.RELATIVE
        for row in _campaigns(connection, "campaigns_of_host", {"host": chosen, "most": MAX_CAMPAIGNS}):
            yield encodable(row[2]), _summary(connection, row, thresholds, way)


def fleet_summaries(address: CatalogueAddress) -> Iterator[tuple[str, str, Summary | str, list[str]]]:
    """Read the newest campaign of each host: names of host and file, its summary or the reason it has none, its boots.

    Raises `StoreError`.
    """
    with connected(address, "tare fleet report", read_only=True) as connection:
        require_tables(connection, address)
        for row in _campaigns(connection, "newest_campaigns", {"most": MAX_HOSTS}):
            read = _summary(connection, row, Thresholds(), Way.RELATIVE)
            yield encodable(row[1]), encodable(row[2]), read, [str(boot) for boot in row[4]]


def _campaigns(connection: Any, name: str, values: dict[str, Any]) -> Iterator[Any]:
    """Read rows of campaigns, some at a time: thousands of records are not in memory together."""
    with connection.cursor(name=name) as cursor:
        cursor.itersize = _ROWS
        cursor.execute(statement(name), values | {"longest": _MAX_RECORD})
        yield from cursor


def _host(connection: Any, address: CatalogueAddress, host: str | None) -> str:
    hosts = dict(connection.execute(statement("hosts"), {"most": MAX_HOSTS}).fetchall())
    if host is not None and host in hosts:
        return host
    if host is None and len(hosts) == 1:
        return str(next(iter(hosts)))
    shown = ", ".join(encodable(name) for name in list(hosts)[:_NAMED])
    more = f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else ""
    what = "several hosts" if host is None else f"no host {host}"
    if not hosts:
        raise StoreError(f"{address.masked(address.url)} has no campaign", fix="tare store push FILE.tare ADDRESS")
    raise UsageError(f"{address.masked(address.url)} has {what}", fix=f"--host with one of: {shown}{more}")


def _summary(connection: Any, row: Any, thresholds: Thresholds, way: Way) -> Summary | str:
    campaign, _, file, text, _ = row
    if len(text) > _MAX_RECORD:
        return f"its record has more than {_MAX_RECORD:,} characters"
    try:
        record, _unknown = known_part(CampaignRecord, text)
    except ValidationError as error:
        return f"its record is not valid: {first_invalid(error)}"
    names = {(workload.name, metric.name) for workload, metric in wanted(record, thresholds)}
    sides = {}
    for platform, workload, metric, mean, logs in connection.execute(
        statement("series"), {"campaign": campaign, "way": way.value, "longest": _MAX_BLOCKS, "most": _MAX_SERIES}
    ):
        if (workload, metric) in names and _sound(mean, logs):
            sides[platform, workload, metric] = MetricSide(np.array(logs, dtype=np.float64), float(mean), unfit=False)
    return Summary(encodable(file), record, sides)


def _sound(mean: Any, logs: Any) -> bool:
    """Return whether these are figures; others are left out, as of a file."""
    return math.isfinite(mean) and len(logs) > 0 and all(isinstance(log, float) and math.isfinite(log) for log in logs)
