"""`tare list`: prints the platforms, workloads and metrics that there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from tare.cli.choices import Listing
from tare.cli.console import Console, emit
from tare.platforms import platform_registry as platforms
from tare.workloads import workload_registry as workloads

#: What a narrow terminal does without, the first first; and the least that a title is worth.
_SPARE = ("network_path", "margin_percent", "mode", "better", "by_default", "family", "unit")
_TITLE = 24


def show_inventory(what: Listing, *, as_json: bool) -> None:
    """Print all platforms, workloads or metrics."""
    rows = {Listing.PLATFORMS: _platforms, Listing.WORKLOADS: _workloads, Listing.METRICS: _metrics}[what]()
    if as_json:
        families = {"families": platforms.offers()} if what is Listing.PLATFORMS else {}
        emit(json.dumps({"schema": "tare.list/1", "what": what.value, "items": rows, **families}, indent=2))
        return
    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = [
        name
        for name, value in rows[0].items()
        if not isinstance(value, dict) and (name != "package" or any(row["package"] for row in rows))
    ]
    columns = _fitting(columns, rows, console.width) if console.is_terminal else columns
    for column in columns:
        table.add_column(column.replace("_", " "))
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in columns))
    for offer in platforms.offers() if what is Listing.PLATFORMS else ():
        table.add_row(offer["name"], offer["title"], _cell(False), offer["asks"])
    console.print(table)


def _fitting(columns: list[str], rows: Sequence[dict[str, Any]], width: int) -> list[str]:
    """The columns that stand beside the names at this width: a name is never cut, and `--json` has all."""
    least = {
        column: max(len(word) for row in rows for word in [*_cell(row[column]).split(), *column.split("_"), ""])
        for column in columns
    }
    least |= {"title": _TITLE} if "title" in least else {}
    kept = list(columns)
    for spare in _SPARE:
        if sum(least[column] + 2 for column in kept) > width and spare in kept:
            kept.remove(spare)
    return kept


def _platforms() -> list[dict[str, Any]]:
    return [
        {
            "name": platform.name,
            "title": platform.title,
            "by_default": platform.by_default,
            "network_path": platform.network_path,
            "open_by_design": dict(platform.open_by_design),
            "package": platforms.package(platform.name),
        }
        for platform in platforms.all_platforms().values()
    ]


def _workloads() -> list[dict[str, Any]]:
    return [
        {
            "name": workload.name,
            "family": workload.family.value,
            "mode": workload.mode.value,
            "by_default": workload.by_default,
            "margin_percent": round(workload.margin * 100, 6),
            "title": workload.title,
            "package": workloads.package(workload.name),
        }
        for workload in workloads.all_workloads().values()
    ]


def _metrics() -> list[dict[str, Any]]:
    return [
        {
            "workload": workload.name,
            "name": metric.name,
            "unit": metric.unit,
            "better": metric.direction.value,
            "title": metric.title,
        }
        for workload in workloads.all_workloads().values()
        for metric in workload.all_metrics
    ]


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
