"""STREAM's four kernels as a probe of the agent, in slices: sustainable memory bandwidth.

J. McCalpin's rule for STREAM is that each array holds at least four times the last-level caches. 128 MiB do for
caches of up to 32 MiB, 256 MiB for up to 64 MiB; three arrays of 256 MiB are the most that an instance of 1 GiB
holds beside its own system. Making them touches every page, so that the warm-up can be short. Bandwidth is in MiB/s
(2**20 bytes; STREAM itself prints 10**6). Li 2017 used STREAM 5.10.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import FULL_SLICES, QUICK_SLICES, Params, SliceWorkload

MIB = 2**20


class Stream(SliceWorkload):
    """Parameters: ``array_bytes`` of each of the three arrays, and those of the schedule."""

    name = "stream"
    title = "STREAM's copy, scale, add and triad, in slices of all instances in turn"
    family = Family.MEMORY
    by_default = True
    metrics = (
        Metric("triad", "MiB/s", Direction.HIGHER, "a[i] = b[i] + s * c[i]"),
        Metric("copy", "MiB/s", Direction.HIGHER, "c[i] = a[i]"),
        Metric("scale", "MiB/s", Direction.HIGHER, "b[i] = s * c[i]"),
        Metric("add", "MiB/s", Direction.HIGHER, "c[i] = a[i] + b[i]"),
    )
    work_unit = "MiB"
    work_scale = MIB
    probe = "stream"
    parts: ClassVar[Mapping[str, str]] = {"triad": "triad", "copy": "copy", "scale": "scale", "add": "add"}
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"array_bytes": 128 * MIB, **QUICK_SLICES, "warmup_ms": 100},
        "full": {"array_bytes": 256 * MIB, **FULL_SLICES, "warmup_ms": 500},
    }


WORKLOAD = Stream()
