"""STREAM's four kernels (McCalpin 1995) as a probe of the agent, in slices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import Params, SliceWorkload

#: STREAM's rule: each array at least four times the last-level cache. 64 MiB holds it for caches up to 16 MiB, and
#: the three arrays together are beyond the cache on larger ones too; `full` takes 128 MiB.
_MIB = 1 << 20


class Stream(SliceWorkload):
    """Memory bandwidth, counted as STREAM counts it: bytes read and written by the kernel's formula."""

    name: ClassVar[str] = "stream"
    title: ClassVar[str] = "STREAM copy, scale, add, triad in slices, all platforms in turn"
    family: ClassVar[Family] = Family.MEMORY
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("triad", "MiB/s", Direction.HIGHER, "Triad a = b + s c"),
        Metric("copy", "MiB/s", Direction.HIGHER, "Copy c = a"),
        Metric("scale", "MiB/s", Direction.HIGHER, "Scale b = s c"),
        Metric("add", "MiB/s", Direction.HIGHER, "Add c = a + b"),
    )
    work_unit: ClassVar[str] = "MiB"
    work_scale: ClassVar[float] = float(_MIB)
    probe: ClassVar[str] = "stream"
    parts: ClassVar[Mapping[str, str]] = {"triad": "triad", "copy": "copy", "scale": "scale", "add": "add"}
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"array_bytes": 64 * _MIB, "slice_ms": 100, "rounds": 8, "warmup_ms": 100},
        "full": {"array_bytes": 128 * _MIB, "slice_ms": 200, "rounds": 40, "warmup_ms": 500},
    }


WORKLOAD = Stream()
