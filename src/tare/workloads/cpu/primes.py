"""The prime search of sysbench cpu as a probe of the agent, in slices.

The same loop as `sysbench-cpu` (its event is one search up to 10,000), but run in all instances in turn on the same
CPUs: drift and other load of the host affect every platform alike, so that this is the most precise figure of a
campaign.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import FULL_SLICES, QUICK_SLICES, Params, SliceWorkload


class Primes(SliceWorkload):
    """Parameters: ``max_prime``, and those of the schedule."""

    name = "primes"
    title = "primes to 10,000, in slices of all instances in turn"
    family = Family.CPU
    by_default = True
    metrics = (Metric("events-per-second", "events/s", Direction.HIGHER, "prime searches a second"),)
    work_unit = "event"
    probe = "primes"
    parts: ClassVar[Mapping[str, str]] = {"events-per-second": "events"}
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"max_prime": 10_000, **QUICK_SLICES, "warmup_ms": 100},
        "full": {"max_prime": 10_000, **FULL_SLICES, "warmup_ms": 500},
    }


WORKLOAD = Primes()
