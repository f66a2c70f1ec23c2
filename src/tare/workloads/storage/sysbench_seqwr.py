"""sysbench fileio seqwr: sequential write. ``full`` is as Kärnä 2021 (section 5.1.4): 5 GiB in 128 files, 30 s.

sysbench calls fsync every 100 requests and at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.storage import fileio


class SysbenchSeqwr(RunWorkload):
    """MiB a second on the data volume."""

    name: ClassVar[str] = "sysbench-seqwr"
    title: ClassVar[str] = "sysbench fileio: sequential write, 16 KiB requests, on the data volume"
    family: ClassVar[Family] = Family.STORAGE
    metrics: ClassVar[tuple[Metric, ...]] = (Metric("written", "MiB/s", Direction.HIGHER, "Sequential write"),)
    work_unit: ClassVar[str] = "MiB"
    packages: ClassVar[tuple[str, ...]] = ("sysbench",)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"total_mib": 128, "files": 128, "time_s": 0},
        "full": {"total_mib": 5120, "files": 128, "time_s": 30},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        """Prepare, run, clean up."""
        return fileio.plan("seqwr", params, around, cold=False)

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        """Read the throughput."""
        return fileio.parse(r"sequential write \(creation\)", "written", params, results)


WORKLOAD = SysbenchSeqwr()
