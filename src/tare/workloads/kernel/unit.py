"""The workloads of unit costs: one call of the agent's probe `calls`, repeated in slices.

Two figures each: how many a second by wall time, and (the campaign's) the CPU time that the whole platform takes for
one. The second is what an application's cost on a platform can be predicted from: its calls of each kind, times their
costs. None of the studies that tare starts from measures single calls; lmbench (L. McVoy and C. Staelin, USENIX 1996)
did, and perf bench and stress-ng do. In slices of all instances in turn: differences of a percent are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import FULL_SLICES, QUICK_SLICES, SliceWorkload


class UnitCost(SliceWorkload):
    """Parameters: ``call``, the agent's name of the call, and those of the schedule.

    ``folder``: optional, where calls that need a file have theirs; by default /data.
    """

    family = Family.KERNEL
    probe = "calls"
    parts: ClassVar[Mapping[str, str]] = {"rate": "calls"}


def unit_cost(name: str, title: str, call: str, unit: str = "call", revision: int = 1) -> UnitCost:
    """Return the workload of one call: ``unit`` is what the agent counts for it."""
    profiles = {
        "quick": {"call": call, **QUICK_SLICES, "warmup_ms": 100},
        "full": {"call": call, **FULL_SLICES, "warmup_ms": 500},
    }
    attributes = {
        "__doc__": UnitCost.__doc__,
        "__module__": __name__,
        "name": name,
        "title": title,
        "metrics": (Metric("rate", f"{_many(unit)}/s", Direction.HIGHER, f"{_many(unit)} a second"),),
        "work_unit": unit,
        "revision": revision,
        "profiles": profiles,
    }
    workload: UnitCost = type("UnitCostOf", (UnitCost,), attributes)()
    return workload


def _many(unit: str) -> str:
    return {"KiB": "KiB", "process": "processes"}.get(unit, f"{unit}s")
