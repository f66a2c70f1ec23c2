"""Memory asked for in calls of 4 KiB to 1 MiB, and touched one word a page: mmap alone, and mmap with munmap.

Anjali, Caraza-Harter and Swift 2020, 6.3, figures 14 to 17: 1 GB by calls of one size, the allocation and the touch
timed apart, without munmap (figures 14, 15) and with it (16, 17; there mmap and munmap count together). Rates instead
of times here, because a slice does not go through 1 GB; the study's seconds are 1024 divided by the rate. Two things
differ:

- A few MiB are mapped, then touched, then given back, where the study does so call by call: no clock is read between.
- Without munmap no more than ``total_bytes`` stay mapped. What is over that is given back between the rounds, which is
  in no rate, but in the CPU cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.errors import HostError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Params, SliceWorkload

MIB = 2**20
SIZES: Mapping[str, str] = {"4k": "4 KiB", "16k": "16 KiB", "64k": "64 KiB", "256k": "256 KiB", "1m": "1 MiB"}
#: ``total_bytes`` 0 is this part of the instance's memory; page tables and the kernel's own come on top.
DEFAULT_PART, MAX_PART = 0.25, 0.5
#: Least ``total_bytes``: a MiB for each size of calls.
MIN = len(SIZES) * MIB

Parts = Mapping[str, tuple[float, int]]


class Sweep(SliceWorkload):
    """Parameters: ``total_bytes`` that stay mapped at most (0: a quarter of the memory limit), the schedule's."""

    family = Family.MEMORY
    work_unit = "MiB"
    work_scale = MIB
    #: A round of 5 MiB took 70 ms on User-Mode Linux: such a slice must be over before the counters are read.
    gap_ms = 100.0
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"total_bytes": 0, "slice_ms": 200, "rounds": 6, "warmup_ms": 200},
        "full": {"total_bytes": 0, "slice_ms": 200, "rounds": 40, "warmup_ms": 500},
    }

    def fitted(self, params: Params, memory_bytes: int) -> Params:
        largest = int(memory_bytes * MAX_PART)
        total = int(params["total_bytes"]) or int(memory_bytes * DEFAULT_PART)
        if not MIN <= total <= largest:
            raise HostError(
                f"{total >> 20} MiB cannot stay mapped in an instance of {memory_bytes >> 20} MiB",
                fix=f"give total_bytes from {MIN} to {largest}, or the instances more --memory",
            )
        return {**params, "total_bytes": total}

    def read_slice(self, parts: Parts, cpu_ns: int | None) -> dict[str, float]:
        """Return a rate for each part, and the CPU cost of a MiB mapped, touched and unmapped, over all call sizes."""
        figures = super().read_slice(parts, None)
        if cpu_ns is not None:
            mapped = sum(work for part, (work, _) in parts.items() if part.startswith("touch-"))
            figures["cpu-cost"] = cpu_ns / (mapped / MIB)
        return figures


def _rate(name: str, title: str) -> Metric:
    return Metric(name, "MiB/s", Direction.HIGHER, title)


class MmapSweep(Sweep):
    """Figures 14 and 15: without munmap."""

    name = "mmap-sweep"
    title = "mmap in calls of 4 KiB to 1 MiB, and a word a page touched"
    probe = "mmap-sweep"
    metrics = (
        *(_rate(f"map-{size}", f"mapped by calls of {words}") for size, words in SIZES.items()),
        *(_rate(f"touch-{size}", f"touched after calls of {words}") for size, words in SIZES.items()),
    )
    parts: ClassVar[Mapping[str, str]] = {metric.name: metric.name for metric in metrics}


class MunmapSweep(Sweep):
    """Figures 16 and 17: with munmap, whose time counts with mmap's."""

    name = "munmap-sweep"
    title = "mmap and munmap in calls of 4 KiB to 1 MiB, a word a page touched in between"
    probe = "munmap-sweep"
    metrics = (
        *(_rate(f"map-unmap-{size}", f"mapped and given back by calls of {words}") for size, words in SIZES.items()),
        *(_rate(f"touch-{size}", f"touched after calls of {words}") for size, words in SIZES.items()),
    )
    parts: ClassVar[Mapping[str, str]] = {metric.name: metric.name for metric in metrics}

    def read_slice(self, parts: Parts, cpu_ns: int | None) -> dict[str, float]:
        """Return the figures of a slice, from the time of mmap and of munmap together."""
        return super().read_slice(_together(parts), cpu_ns)


def _together(parts: Parts) -> Parts:
    nothing = (0.0, 0)
    together = dict(parts)
    for size in SIZES:
        (mapped, map_ns), (unmapped, unmap_ns) = (parts.get(f"{kind}-{size}", nothing) for kind in ("map", "unmap"))
        # What was not given back was not done.
        together[f"map-unmap-{size}"] = (min(mapped, unmapped), map_ns + unmap_ns)
    return together


WORKLOADS = (MmapSweep(), MunmapSweep())
