"""What `tare list` does: prints the platforms, workloads and metrics that there are."""

from __future__ import annotations

import json
from typing import Any

from rich.table import Table

from tare.cli.choices import Listing
from tare.cli.console import Console, emit
from tare.platforms import registry as platforms
from tare.workloads import registry as workloads


def show_inventory(what: Listing, *, as_json: bool) -> None:
    """Print all platforms, workloads or metrics."""
    rows = {Listing.PLATFORMS: _platforms, Listing.WORKLOADS: _workloads, Listing.METRICS: _metrics}[what]()
    if as_json:
        families = {"families": platforms.offers()} if what is Listing.PLATFORMS else {}
        emit(json.dumps({"schema": "tare.list/1", "what": what.value, "items": rows, **families}, indent=2))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = [
        name
        for name, value in rows[0].items()
        if not isinstance(value, dict) and (name != "package" or any(row["package"] for row in rows))
    ]
    for column in columns:
        table.add_column(column.replace("_", " "))
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in columns))
    for offer in platforms.offers() if what is Listing.PLATFORMS else ():
        table.add_row(offer["name"], offer["title"], _cell(False), offer["asks"])
    Console().print(table)


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
