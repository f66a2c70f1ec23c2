"""Whetstone in double precision as a probe of the agent, in slices: floating point, and the library's functions.

Giallorenzo 2021 (table 2) ran 5,000,000 passes of the C version of 1996 five times. Here the time is fixed and the
instructions are counted, in millions of Whetstone instructions a second (MWIPS). sin, cos, exp and the like are those
of the C library in the agent, which chooses them by what the processor shows that it has: a platform that hides
instructions (an emulated processor) pays for that here, as every program in it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import FULL_SLICES, QUICK_SLICES, Params, SliceWorkload


class Whetstone(SliceWorkload):
    """Parameters: those of the schedule."""

    name = "whetstone"
    title = "Whetstone, double precision, in slices of all instances in turn"
    family = Family.CPU
    metrics = (Metric("mwips", "MWIPS", Direction.HIGHER, "millions of Whetstone instructions a second"),)
    work_unit = "MWI"
    work_scale = 1e3  # the probe counts thousands
    probe = "whetstone"
    parts: ClassVar[Mapping[str, str]] = {"mwips": "kilo-instructions"}
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {**QUICK_SLICES, "warmup_ms": 100},
        "full": {**FULL_SLICES, "warmup_ms": 500},
    }


WORKLOAD = Whetstone()
