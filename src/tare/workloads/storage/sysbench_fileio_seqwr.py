"""sysbench fileio seqwr: writing files from one end to the other, with fsync of all of them every 100 writes.

The test of Kärnä 2021, 5.1.4, in `full` with its 5 GB and 30 seconds; `quick` goes through 64 MiB once in each
round, or as far as a second takes it. The files exist before and are written back, so that no block is allocated and no
dirty page of the preparation is flushed while it is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads import sysbench
from tare.workloads.base import Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import positive
from tare.workloads.storage import fileio


class SysbenchFileioSeqwr(RunWorkload):
    """Parameters: ``total_mib``, ``least_mib``, ``passes``, ``time_s``."""

    name = "sysbench-fileio-seqwr"
    title = "sysbench fileio: sequential write with periodic fsync"
    family = Family.STORAGE
    by_default = True
    metrics = (
        Metric("throughput", "MiB/s", Direction.HIGHER, "data written a second"),
        Metric("fsyncs-per-second", "fsyncs/s", Direction.HIGHER, "fsync calls a second"),
    )
    work_unit = "MiB"
    packages = sysbench.PACKAGES
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"total_mib": 64, "least_mib": 32, "passes": 1, "time_s": 1, "rounds": 3},
        "full": {"total_mib": 5120, "least_mib": 5120, "passes": 0, "time_s": 30, "rounds": 1},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        return fileio.plan("seqwr", params, around, syncs=True)

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        report = fileio.read(params, results, r"sequential write \(creation\)")
        moved = fileio.throughput(report, "written", idle_way="read")
        fsyncs = positive("sysbench", "fsyncs a second", report.fields["fsyncs"])
        if params["passes"] == 0:
            sysbench.require_time(report, float(params["time_s"]))
        return Outcome({"throughput": moved, "fsyncs-per-second": fsyncs}, work=fileio.written_mib(report))


WORKLOAD = SysbenchFileioSeqwr()
