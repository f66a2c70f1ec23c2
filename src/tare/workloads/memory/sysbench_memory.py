"""sysbench memory: how fast one buffer is written again and again.

sysbench's own default is blocks of 1 KiB, with a reading of the clock before and after each: on the machine where
this was written that is two thirds of the run. Blocks of 128 KiB leave the clock out of the figure, but for a per cent.
The buffer stays in a cache, and at no cache's edge, where neighbours and the choice of pages decide what is measured:
it is larger than first-level caches (32 to 64 KiB) and half of the smallest second-level ones (256 KiB to 2 MiB).
`stream` is the workload for the memory behind them. (None of the studies that tare starts from fixes these parameters.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads import sysbench
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import agree, positive


class SysbenchMemory(RunWorkload):
    """`sysbench memory`. Parameters: ``block_kib``, ``operation`` (read, write), ``threads``, ``time_s``.

    ``total_mib``: after which it ends, 0 for none; sysbench's own default of 100 GiB is soon done. The rate is of its
    total time, as `sysbench-cpu`'s.
    """

    name = "sysbench-memory"
    revision = 2  # before, blocks of 1 MiB, as large as many second-level caches
    title = "sysbench memory: writing blocks of 128 KiB"
    family = Family.MEMORY
    by_default = True
    metrics = (Metric("throughput", "MiB/s", Direction.HIGHER, "memory written a second"),)
    work_unit = "MiB"
    packages = sysbench.PACKAGES
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {
            "block_kib": 128,
            "operation": "write",
            "threads": 1,
            "total_mib": 2048,
            "time_s": 1,
            "rounds": 5,
        },
        "full": {
            "block_kib": 128,
            "operation": "write",
            "threads": 1,
            "total_mib": 0,
            "time_s": 10,
            "rounds": 1,
        },
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        def run(total: str) -> Command:
            argv = (
                "sysbench",
                "memory",
                f"--memory-block-size={params['block_kib']}K",
                f"--memory-total-size={total}",
                f"--memory-oper={params['operation']}",
                "--memory-scope=global",
                "--memory-access-mode=seq",
                f"--threads={params['threads']}",
                f"--time={params['time_s']}",
                "run",
            )
            return Command(argv, time_limit_s=float(params["time_s"]) + sysbench.GRACE_S)

        return RunPlan(starts=(run(f"{params['block_kib']}K"),), measures=(run(f"{params.get('total_mib', 0)}M"),))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        report = sysbench.read(
            results,
            int(params["threads"]),
            options=(
                r"Running memory speed test with the following options:",
                r"block size: (?P<block>\d+)KiB",
                rf"total size: {params.get('total_mib', 0)}MiB",
                r"operation: (?P<operation>\w+)",
                r"scope: global",
            ),
            figures=(
                rf"Total operations: (?P<operations>\d+) \( *(?P<rate>{sysbench.NUMBER}) per second\)",
                rf"(?P<moved>{sysbench.NUMBER}) MiB transferred \((?P<throughput>{sysbench.NUMBER}) MiB/sec\)",
            ),
        )
        if (int(report.fields["block"]), report.fields["operation"]) != (params["block_kib"], params["operation"]):
            raise ParseError(
                f"sysbench did {report.fields['operation']} in blocks of {report.fields['block']} KiB, "
                f"not {params['operation']} of {params['block_kib']} KiB"
            )
        if report.events * int(params["block_kib"]) != int(params.get("total_mib", 0)) * 1024:
            sysbench.require_time(report, float(params["time_s"]))
        return _outcome(report, int(params["block_kib"]))


def _outcome(report: sysbench.SysbenchReport, block_kib: int) -> Outcome:
    moved = positive("sysbench", "memory", report.fields["moved"])
    throughput = positive("sysbench", "throughput", report.fields["throughput"])
    agree("sysbench", "MiB transferred", moved, int(report.fields["operations"]) * block_kib / 1024)
    agree("sysbench", "operations a second", float(report.fields["rate"]), throughput * 1024 / block_kib)
    sysbench.require_rate(report, "MiB", moved, throughput)
    return Outcome({"throughput": moved / report.seconds}, work=moved)


WORKLOAD = SysbenchMemory()
