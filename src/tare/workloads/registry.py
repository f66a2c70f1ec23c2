"""Finds workloads: the modules below this package, and those that others register."""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Iterator

import tare.workloads
from tare.errors import UsageError
from tare.model import Family
from tare.suggest import nearest
from tare.workloads.base import Workload

GROUP = "tare.workloads"


def all_workloads() -> dict[str, Workload]:
    """Every known workload by name, in the order of the families, then by name."""
    found: dict[str, Workload] = {}
    for workload in (*_built_in(), *_registered()):
        if workload.name in found:
            raise UsageError(f"two workloads are called {workload.name!r}", fix="uninstall one of the plugins")
        found[workload.name] = workload
    families = list(Family)
    return dict(sorted(found.items(), key=lambda item: (families.index(item[1].family), item[0])))


def get(name: str) -> Workload:
    """The workload of this name. Raises `UsageError` that says the nearest names."""
    known = all_workloads()
    if name not in known:
        raise UsageError(f"there is no workload {name!r}", fix=nearest(name, known))
    return known[name]


def _built_in() -> Iterator[Workload]:
    for module in pkgutil.walk_packages(tare.workloads.__path__, "tare.workloads."):
        yield from _of(importlib.import_module(module.name))


def _registered() -> Iterator[Workload]:
    for point in importlib.metadata.entry_points(group=GROUP):
        yield from _of(point.load())


def _of(module: object) -> Iterator[Workload]:
    workload = getattr(module, "WORKLOAD", None)
    if isinstance(workload, Workload):
        yield workload
