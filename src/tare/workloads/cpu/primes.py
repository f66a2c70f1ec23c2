"""The same prime loop as sysbench's, as a probe of the agent in slices: the most precise figure for the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import Params, SliceWorkload


class Primes(SliceWorkload):
    """Events a second, in slices that all platforms take in turn."""

    name: ClassVar[str] = "primes"
    title: ClassVar[str] = "sysbench's prime loop in slices, all platforms in turn"
    family: ClassVar[Family] = Family.CPU
    metrics: ClassVar[tuple[Metric, ...]] = (Metric("events", "events/s", Direction.HIGHER, "Prime events"),)
    work_unit: ClassVar[str] = "event"
    probe: ClassVar[str] = "primes"
    parts: ClassVar[Mapping[str, str]] = {"events": "events"}
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"max_prime": 10_000, "slice_ms": 100, "rounds": 8, "warmup_ms": 100},
        "full": {"max_prime": 10_000, "slice_ms": 100, "rounds": 40, "warmup_ms": 500},
    }


WORKLOAD = Primes()
