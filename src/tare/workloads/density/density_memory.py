"""What one more idle instance takes of the host's memory, when some are there already.

Pages that instances share (programs, libraries, what a hypervisor merges) count once.

Four figures. What the further instances have that no other has and no file gives back, and the kernel has for them
(`memory-footprint`'s ``idle-own``), by instance. The growth from one instance to the most, by instance, of the
proportional set size (PSS) of all their host processes; and of what the host has less available (``MemAvailable``,
proc(5)), the only figure that includes what belongs to no process and no group, such as daemons' memory and the
kernel's own for a network device. It also changes with whatever else the host does. And what is in use of the control
groups of all but the first, page cache and the kernel's memory included: no growth, since what the first one's group
gave back meanwhile is not theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Metric
from tare.workloads.apart import MemoryDensity, MemoryReading
from tare.workloads.base import Params

MIB = 2**20


class DensityMemory(MemoryDensity):
    """Parameter: ``most``, of at least 2."""

    name = "density-memory"
    title = "the host's memory that one more idle instance takes"
    revision = 2
    metrics = (
        Metric("further-own", "MiB", Direction.LOWER, "one more instance's own pages and the kernel's for it"),
        Metric("further-pss", "MiB", Direction.LOWER, "PSS of one more instance"),
        Metric("further-group", "MiB", Direction.LOWER, "charged to the control group of one more instance"),
        Metric("further-available", "MiB", Direction.LOWER, "what the host has less available by one more instance"),
        Metric("first-own", "MiB", Direction.LOWER, "the first instance's own pages and the kernel's for it"),
        Metric("first-pss", "MiB", Direction.LOWER, "PSS of the first instance while it is alone"),
        Metric("first-group", "MiB", Direction.LOWER, "charged to the control group of the first instance"),
        Metric("first-available", "MiB", Direction.LOWER, "what the host has less available by the first instance"),
    )
    work_unit = "instance"
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"most": 4}, "full": {"most": 8}}

    def counts(self, params: Params) -> tuple[int, ...]:
        """One, and the most: no figure is of the steps between."""
        first, *further = super().counts(params)
        return (first, *further[-1:])

    def measure_memory(self, before: int, readings: Sequence[MemoryReading]) -> dict[str, float]:
        first, last = readings[0], readings[-1]
        further = len(last.usages) - len(first.usages)
        if further < 1:
            raise ParseError(f"{len(last.usages)} instances do not tell what one more takes")
        first_pss, last_pss = (sum(usage.pss for usage in reading.usages) for reading in (first, last))
        groups = [size for usage in (*first.usages, *last.usages) for size in (usage.own, usage.group)]
        taken = [before - first.available, first.available - last.available]
        if min(first_pss, last_pss, *groups) <= 0:
            raise ParseError("an instance uses no memory")
        figures = {
            "further-own": sum(usage.own for usage in last.usages[-further:]) / further,
            "further-pss": (last_pss - first_pss) / further,
            "further-group": sum(usage.group for usage in last.usages[-further:]) / further,
            "further-available": taken[1] / further,
            "first-own": sum(usage.own for usage in first.usages),
            "first-pss": first_pss,
            "first-group": sum(usage.group for usage in first.usages),
            "first-available": taken[0],
        }
        return {name: value / MIB for name, value in figures.items()}


WORKLOAD = DensityMemory()
