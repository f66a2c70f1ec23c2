"""What one more idle instance takes of the host's memory, when some are there already.

Pages that instances share (programs, libraries, what a hypervisor merges) count once.

Three figures, each of the growth from one instance to the most, by instance: the proportional set size (PSS) of all
their host processes; what is charged to their control groups, page cache and the kernel's memory included; and what
the host has less available (``MemAvailable``, proc(5)), the only one that includes what belongs to no process and no
group, such as daemons' memory and the kernel's own for a network device. It also changes with whatever else the host
does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Metric
from tare.workloads.apart import Load, WeightDensity
from tare.workloads.base import Params

MIB = 2**20


class DensityMemory(WeightDensity):
    """Parameter: ``most``, of at least 2."""

    name = "density-memory"
    title = "the host's memory that one more idle instance takes"
    metrics = (
        Metric("further-pss", "MiB", Direction.LOWER, "PSS of one more instance"),
        Metric("further-group", "MiB", Direction.LOWER, "charged to the control group of one more instance"),
        Metric("further-available", "MiB", Direction.LOWER, "what the host has less available by one more instance"),
        Metric("first-pss", "MiB", Direction.LOWER, "PSS of the first instance while it is alone"),
        Metric("first-group", "MiB", Direction.LOWER, "charged to the control group of the first instance"),
        Metric("first-available", "MiB", Direction.LOWER, "what the host has less available by the first instance"),
    )
    work_unit = "instance"
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"most": 4}, "full": {"most": 8}}

    def measure_memory(self, before: int, loads: Sequence[Load]) -> dict[str, float]:
        first, last = loads[0], loads[-1]
        more = len(last.weights) - len(first.weights)
        if more < 1:
            raise ParseError(f"{len(last.weights)} instances do not tell what one more takes")
        first_sums, last_sums = (
            [sum(w.pss for w in load.weights), sum(w.group for w in load.weights)] for load in (first, last)
        )
        taken = [before - first.available, first.available - last.available]
        if min(first_sums) <= 0 or min(last_sums) <= 0:
            raise ParseError("an instance weighs nothing")
        figures = {
            "further-pss": (last_sums[0] - first_sums[0]) / more,
            "further-group": (last_sums[1] - first_sums[1]) / more,
            "further-available": taken[1] / more,
            "first-pss": first_sums[0],
            "first-group": first_sums[1],
            "first-available": taken[0],
        }
        return {name: value / MIB for name, value in figures.items()}


WORKLOAD = DensityMemory()
