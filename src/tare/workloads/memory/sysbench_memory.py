"""sysbench memory with sysbench's own defaults: sequential writes of 1 KiB blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads import sysbench
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import number, only


class SysbenchMemory(RunWorkload):
    """MiB a second. Much of a 1 KiB event is sysbench's own clock reading, as it is in everybody's figures of it."""

    name: ClassVar[str] = "sysbench-memory"
    title: ClassVar[str] = "sysbench memory: sequential writes of 1 KiB, one thread"
    family: ClassVar[Family] = Family.MEMORY
    metrics: ClassVar[tuple[Metric, ...]] = (Metric("written", "MiB/s", Direction.HIGHER, "Memory written"),)
    work_unit: ClassVar[str] = "MiB"
    packages: ClassVar[tuple[str, ...]] = ("sysbench",)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"block_kib": 1, "threads": 1, "time_s": 1},
        "full": {"block_kib": 1, "threads": 1, "time_s": 10},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:  # noqa: ARG002 (one block is all it takes)
        """One run for a fixed time: the total size is out of reach."""
        options = [f"--memory-block-size={params['block_kib']}K", "--memory-total-size=1024T", "--memory-oper=write"]
        argv = ("sysbench", "memory", *options, f"--threads={params['threads']}", f"--time={params['time_s']}", "run")
        return RunPlan((Command(argv, time_limit_s=float(params["time_s"]) + sysbench.GRACE_S),))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        """Read MiB a second, checked against what was transferred in the time."""
        text = sysbench.whole_run(results)
        only(rf"^  block size: {params['block_kib']}KiB$", text, "sysbench")
        only(r"^  operation: write$", text, "sysbench")
        moved = only(r"^([\d.]+) MiB transferred \(([\d.]+) MiB/sec\)$", text, "sysbench")
        total, rate = number(moved[1], "MiB transferred"), number(moved[2], "MiB/sec")
        return Outcome({"written": sysbench.agree(rate, total / sysbench.seconds(text), "MiB/s")}, work=total)


WORKLOAD = SysbenchMemory()
