"""sysbench fileio seqrd: reading files from one end to the other, out of a cold page cache.

`quick` reads every file once, so that all of it comes from the disk below. `full` is the test of Kärnä 2021, 5.1.4
(5 GB, 30 seconds): from the second pass on, what fits the page caches is read from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads import sysbench
from tare.workloads.base import Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.storage import fileio


class SysbenchFileioSeqrd(RunWorkload):
    """Parameters: ``total_mib``, ``least_mib``, ``passes``, ``time_s``."""

    name = "sysbench-fileio-seqrd"
    title = "sysbench fileio: sequential read of cold files"
    family = Family.STORAGE
    by_default = True
    metrics = (Metric("throughput", "MiB/s", Direction.HIGHER, "data read a second"),)
    work_unit = "MiB"
    packages = sysbench.PACKAGES
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"total_mib": 128, "least_mib": 64, "passes": 1, "time_s": 10, "rounds": 5},
        "full": {"total_mib": 5120, "least_mib": 5120, "passes": 0, "time_s": 30, "rounds": 1},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        return fileio.plan("seqrd", params, around)

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        report = fileio.read(params, results, "sequential read")
        fileio.throughput(report, "read", idle_way="written")
        if float(report.fields["fsyncs"]) != 0:
            raise ParseError(f"sysbench did {report.fields['fsyncs']} fsyncs a second while reading")
        if params["passes"] == 0:
            sysbench.require_time(report, float(params["time_s"]))
        moved = report.events * fileio.BLOCK_KIB / 1024  # every event is one request here
        return Outcome({"throughput": moved / report.seconds}, work=moved)


WORKLOAD = SysbenchFileioSeqrd()
