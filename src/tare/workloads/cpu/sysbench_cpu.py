"""sysbench cpu: primes up to 10,000 by trial division, as Kärnä 2021 (section 5.1.3) ran it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads import sysbench
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import number, only


class SysbenchCpu(RunWorkload):
    """Events a second; an event finds all primes up to the limit."""

    name: ClassVar[str] = "sysbench-cpu"
    title: ClassVar[str] = "sysbench cpu: primes to 10,000, one thread"
    family: ClassVar[Family] = Family.CPU
    metrics: ClassVar[tuple[Metric, ...]] = (Metric("events", "events/s", Direction.HIGHER, "Prime events"),)
    work_unit: ClassVar[str] = "event"
    packages: ClassVar[tuple[str, ...]] = ("sysbench",)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"max_prime": 10_000, "threads": 1, "time_s": 1},
        "full": {"max_prime": 10_000, "threads": 1, "time_s": 10},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:  # noqa: ARG002 (fits anywhere)
        """One run for a fixed time."""
        options = [f"--cpu-max-prime={params['max_prime']}", f"--threads={params['threads']}"]
        argv = ("sysbench", "cpu", *options, f"--time={params['time_s']}", "run")
        return RunPlan((Command(argv, time_limit_s=float(params["time_s"]) + sysbench.GRACE_S),))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        """Read events a second, checked against events and time."""
        text = sysbench.whole_run(results)
        only(rf"^Prime numbers limit: {params['max_prime']}$", text, "sysbench")
        rate = number(only(r"^    events per second: +([\d.]+)$", text, "sysbench")[1], "events per second")
        total = sysbench.events(text)
        return Outcome({"events": sysbench.agree(rate, total / sysbench.seconds(text), "events/s")}, work=total)


WORKLOAD = SysbenchCpu()
