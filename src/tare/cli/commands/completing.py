"""For the shell's completion: names of a campaign that stands on the command line, or else all that tare knows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tare.errors import TareError

if TYPE_CHECKING:
    from tare.store import CampaignRecord


def platforms(context: typer.Context, incomplete: str) -> list[str]:
    """Platforms whose names begin so."""
    return _of(context, incomplete, lambda record: (platform.name for platform in record.platforms), _all_platforms)


def workloads(context: typer.Context, incomplete: str) -> list[str]:
    """Workloads, likewise."""
    return _of(context, incomplete, lambda record: (workload.name for workload in record.workloads), _all_workloads)


def metrics(context: typer.Context, incomplete: str) -> list[str]:
    """Metrics as WORKLOAD/METRIC, likewise."""
    return _of(context, incomplete, _metrics, _all_metrics)


def _of(
    context: typer.Context,
    incomplete: str,
    campaigns: Callable[[CampaignRecord], Iterable[str]],
    known: Callable[[], Iterable[str]],
) -> list[str]:
    # While a line is completed its words may not have been given to the arguments.
    record = _record(context.params.get("file") or next(iter(context.args), None))
    names = known() if record is None else campaigns(record)
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _record(file: Any) -> CampaignRecord | None:
    """Return what the campaign's file says; None where there is none that can be read."""
    from tare.store import read_store

    with contextlib.suppress(TareError, OSError):
        if file is not None and Path(file).is_file():
            with read_store(Path(file)) as store:
                return store.record
    return None


def _metrics(record: CampaignRecord) -> Iterable[str]:
    return (f"{workload.name}/{metric.name}" for workload in record.workloads for metric in workload.metrics)


def _all_platforms() -> Iterable[str]:
    from tare.platforms import platform_registry

    return platform_registry.all_platforms()


def _all_workloads() -> Iterable[str]:
    from tare.workloads import workload_registry

    return workload_registry.all_workloads()


def _all_metrics() -> Iterable[str]:
    from tare.workloads import workload_registry

    known = workload_registry.all_workloads().values()
    return (f"{workload.name}/{metric.name}" for workload in known for metric in workload.all_metrics)
