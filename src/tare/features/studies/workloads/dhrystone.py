"""Dhrystone 2.1 as a probe of the agent, in slices: integers, records, strings and calls.

Giallorenzo 2021 (table 2) ran 2,147,483,627 iterations of version 2.2 five times and compared their times. Here the
time is fixed and the runs are counted, which is the same rate; version 2.2 differs from 2.1 only in what it shows the
compiler. A figure is comparable between platforms, and not with those of other compilers: Dhrystone never was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import FULL_SLICES, QUICK_SLICES, Params, SliceWorkload


class Dhrystone(SliceWorkload):
    """Parameters: those of the schedule."""

    name = "dhrystone"
    title = "Dhrystone 2.1, in slices of all instances in turn"
    family = Family.CPU
    metrics = (Metric("dhrystones-per-second", "runs/s", Direction.HIGHER, "runs through its main loop a second"),)
    work_unit = "run"
    probe = "dhrystone"
    parts: ClassVar[Mapping[str, str]] = {"dhrystones-per-second": "runs"}
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {**QUICK_SLICES, "warmup_ms": 100},
        "full": {**FULL_SLICES, "warmup_ms": 500},
    }


WORKLOAD = Dhrystone()
