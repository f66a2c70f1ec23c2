"""How many instances of a platform fit on this host: idle ones are added, and what each more of them takes is measured.

`tare capacity` runs it. The figures here are those of one fill; how many fit, with an interval over the fills of all
blocks, which resource runs out first and what to reserve is the report's section "Capacity" (docs/capacity.md).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import ClassVar

from tare.capacity_model import CAPACITY, FILLED, Fill, memory_used
from tare.errors import ParseError
from tare.model import Direction, Metric
from tare.workloads.apart import FillWorkload
from tare.workloads.base import Params, RunWorkload

MIB = 2**20
#: Of a trial that predicts: see `FillWorkload`.
_USUAL: Params = {
    "most": 16,
    "time_s": 30,
    "fill": False,
    "reserve": 0.1,
    "budget_bytes": 0,
    "start_p99_s": 0,
    "failures": 0,
    "keep": 0,
    "active": 0,
    "memory_stall": 0,
    "cpu_stall": 0,
}


class CapacityWorkload(FillWorkload):
    """Parameters: those of `FillWorkload`."""

    name = CAPACITY
    title = "the host while ever more idle instances run on it"
    metrics = (
        Metric("memory", "MiB", Direction.LOWER, "the host's memory that one more instance takes"),
        Metric("start", "ms", Direction.LOWER, "a start while others run, the median"),
    )
    work_unit = "instance"
    profiles: ClassVar[Mapping[str, Params]] = {"quick": _USUAL, "full": {**_USUAL, "most": 64, "time_s": 60}}
    least: ClassVar[Mapping[str, float]] = {"most": 2}

    def read(self, fill: Fill) -> dict[str, float]:
        before, *levels = fill.levels
        starts = [start for level in levels for start in level.starts_ms]
        if not starts:
            raise ParseError(f"no instance runs: {fill.reason}")
        figures = {"start": statistics.median(starts)}
        if len(levels) > 1:
            counts, used = zip(*((level.count, memory_used(before, level)) for level in levels), strict=True)
            each = statistics.linear_regression(counts, used).slope / MIB
            if each > 0:  # else the host's noise is larger than the instances
                figures["memory"] = each
        return figures


def of_application(application: RunWorkload) -> CapacityWorkload:
    """Return the workload that fills the host with a user's application (``app:FILE``), chosen by ``fill:FILE``."""

    class _OfApplication(CapacityWorkload):
        title = f"the host while ever more instances run on it, {application.name} in service in each"
        origin = f"{FILLED}{application.origin.partition(':')[2]}"
        source = application.source
        layer = application.layer
        packages = application.packages
        pids = application.pids
        profiles: ClassVar[Mapping[str, Params]] = {
            name: {**params, "file": application.profiles[name]["file"]}
            for name, params in CapacityWorkload.profiles.items()
        }

    filled = _OfApplication()
    filled.application = application
    return filled


WORKLOAD = CapacityWorkload()
