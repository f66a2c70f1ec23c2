"""The least memory limit with which an instance comes up and works as with the campaign's: by bisection.

Plauth 2017, 5.1: "we identified the least amount of memory that did not degrade performance by testing different
values in steps of 8 MiB", for machines whose memory is fixed when they start. Here the same is measured for every
platform, with the same definition: the limit (``Resources.memory_bytes``) is what a container has from its control
group, and what a guest has as its memory. What the guest's monitor takes beside that is `memory-footprint`'s figure.

Each try starts an instance anew. It has to come up, to run a first command, and to do at least 95 % of the prime
searches a second that instances with the campaign's limit do (the middle one of the newest three: one is started after
each try, because a machine that others share is faster in one minute than in the next). Neighbours only make slower: of
an instance's rounds the best counts, and a limit is too little when so many instances (``tries``) were all too slow.
One that does not come up, or is killed at work, is an answer at once, and no failure. The prime search itself
takes next to no memory, so this is what the platform needs, not what a program needs on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.apart import Attempt, LeastWorkload
from tare.workloads.base import Params, SliceWorkload
from tare.workloads.cpu import primes

MIB = 2**20


class MemoryLeast(LeastWorkload):
    """Parameters: ``degrades``, a share of the rate that may be lost, ``tries``; and those of `primes`."""

    name = "memory-least"
    title = "the least memory limit that lets an instance work"
    family = Family.MEMORY
    step_bytes = 8 * MIB
    metrics = (
        Metric(
            "limit", "MiB", Direction.LOWER, "least memory limit that degrades nothing", resolution=step_bytes / MIB
        ),
    )
    work_unit = "try"
    inner: ClassVar[SliceWorkload] = primes.WORKLOAD
    metric = "events-per-second"
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"degrades": 0.05, "tries": 5, "max_prime": 10_000, "slice_ms": 50, "rounds": 4, "warmup_ms": 50},
        "full": {"degrades": 0.05, "tries": 5, "max_prime": 10_000, "slice_ms": 200, "rounds": 10, "warmup_ms": 200},
    }

    def inner_params(self, params: Params) -> Params:
        return {key: value for key, value in params.items() if key not in {"degrades", "tries"}}

    def suffices(self, params: Params, whole: Attempt, tried: Attempt) -> bool:
        if tried.rate is None or whole.rate is None:
            return False
        return tried.rate >= (1 - float(params["degrades"])) * whole.rate

    def read(self, least_bytes: int) -> dict[str, float]:
        return {"limit": least_bytes / MIB}


WORKLOAD = MemoryLeast()
