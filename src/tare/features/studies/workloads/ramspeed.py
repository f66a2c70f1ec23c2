"""RAMspeed's families for integers, for floating-point numbers and for SSE, as probes of the agent, in slices.

Giallorenzo 2021 ran RAMspeed 3.5.0 (``-g 32 -l 5``) and reports the mean of copy, scale, add and triad. Debian does not
have it, so that the agent does the same work anew: mark (INTmark, FLOATmark, SSEmark) writes and reads one block, an
element at a time; mem (INTmem, FLOATmem, SSEmem) does copy, scale, add and triad on arrays of 32 MiB, RAMspeed's
default. An element has 8 bytes, of SSE 16. The families "(nt)" store past the caches; tare has SSE's. sysbench memory
and mbw, which Debian has, know neither scale, add nor triad nor floating-point numbers.
RAMspeed's passes are gigabytes long; in slices each part goes on where it was. Its MMX families are left out: those
registers of 8 bytes are the old floating-point unit's, and neither Rust nor today's C compilers make code for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import ClassVar

from tare.errors import HostError
from tare.model import Direction, Family, Metric
from tare.workloads.base import FULL_SLICES, QUICK_SLICES, Params, SliceWorkload

MIB = 2**20
#: Largest part of the instance's memory for the arrays: its system and the agent need the rest.
MAX_PART = 0.8
KERNELS = ("copy", "scale", "add", "triad")


class Ramspeed(SliceWorkload):
    """Parameters: ``block_bytes`` of mark, ``array_bytes`` of each of mem's three arrays, and the schedule's."""

    family = Family.MEMORY
    metrics = (
        Metric("mem", "MiB/s", Direction.HIGHER, "mean of copy, scale, add and triad"),
        Metric("copy", "MiB/s", Direction.HIGHER, "a[i] = b[i]"),
        Metric("scale", "MiB/s", Direction.HIGHER, "a[i] = m * b[i]"),
        Metric("add", "MiB/s", Direction.HIGHER, "a[i] = b[i] + c[i]"),
        Metric("triad", "MiB/s", Direction.HIGHER, "a[i] = m * b[i] + c[i]"),
        Metric("write", "MiB/s", Direction.HIGHER, "mark: a block written"),
        Metric("read", "MiB/s", Direction.HIGHER, "mark: a block read"),
    )
    work_unit = "MiB"
    work_scale = MIB
    #: ``mem`` is made of four parts; copy stands for them here, so that a slice without it is refused.
    parts: ClassVar[Mapping[str, str]] = {"mem": "copy", **{name: name for name in (*KERNELS, "write", "read")}}
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"block_bytes": MIB, "array_bytes": 32 * MIB, **QUICK_SLICES, "warmup_ms": 100},
        "full": {"block_bytes": MIB, "array_bytes": 32 * MIB, **FULL_SLICES, "warmup_ms": 500},
    }

    def fitted(self, params: Params, memory_bytes: int) -> Params:
        needed = 3 * int(params["array_bytes"]) + int(params["block_bytes"])
        if needed > memory_bytes * MAX_PART:
            raise HostError(
                f"three arrays and a block of {needed >> 20} MiB do not fit an instance of {memory_bytes >> 20} MiB",
                fix="give smaller array_bytes, or the instances more --memory",
            )
        return params

    def read_slice(self, parts: Mapping[str, tuple[float, int]], cpu_ns: int | None) -> dict[str, float]:
        """Return a rate for each part, and ``mem``, RAMspeed's mean of the four kernels."""
        figures = super().read_slice(parts, cpu_ns)
        figures["mem"] = fmean(figures[kernel] for kernel in KERNELS)
        return figures


class RamspeedInt(Ramspeed):
    """INTmark and INTmem."""

    name = "ramspeed-int"
    title = "RAMspeed's INTmark and INTmem, by a probe (RAMspeed is not in Debian)"
    probe = "ramspeed-int"


class RamspeedFloat(Ramspeed):
    """FLOATmark and FLOATmem."""

    name = "ramspeed-float"
    title = "RAMspeed's FLOATmark and FLOATmem, by a probe (RAMspeed is not in Debian)"
    probe = "ramspeed-float"


class RamspeedSse(Ramspeed):
    """SSEmark and SSEmem."""

    name = "ramspeed-sse"
    title = "RAMspeed's SSEmark and SSEmem, by a probe (RAMspeed is not in Debian)"
    probe = "ramspeed-sse"


class RamspeedSsePastCaches(Ramspeed):
    """SSEmark (nt) and SSEmem (nt)."""

    name = "ramspeed-sse-nt"
    title = "RAMspeed's SSEmark and SSEmem with stores past the caches, by a probe"
    probe = "ramspeed-sse-nt"


WORKLOADS = (RamspeedInt(), RamspeedFloat(), RamspeedSse(), RamspeedSsePastCaches())
