"""What an instance that does nothing costs in CPU time: timers of its kernel, monitor or sentry, and of the agent.

A host holds fewer instances that wake up while they idle. The instance is fresh and nothing is asked of it: the client
sleeps, and the CPU time is that of the instance's control group meanwhile, with all processes of its platform but
shared daemons. tare's agent, which waits, is in the figure of every platform alike. `tare capacity` has the same of a
full host, daemons included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, IdleWorkload, Outcome, Params, RunPlan, Side, Surroundings

#: Until a fresh instance has done what it does after its start.
SETTLE_S = 2.0


class IdleCpu(IdleWorkload):
    """Parameter: ``time_s``, in which the instance is left alone."""

    name = "idle-cpu"
    title = "CPU time of an instance that does nothing"
    family = Family.LIFE
    metrics = (Metric("cpu", "us/s", Direction.LOWER, "CPU time of the whole platform for each second"),)
    work_unit = "second"
    packages = ("coreutils",)
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"time_s": 5.0}, "full": {"time_s": 30.0}}
    least: ClassVar[Mapping[str, float]] = {"time_s": 1.0}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        wait_s = float(params["time_s"])
        asleep = Command(("sleep", f"{wait_s:g}"), side=Side.CLIENT, cwd="/", time_limit_s=wait_s + 60)
        return RunPlan(prepare=(Command(("sleep", f"{SETTLE_S:g}")),), measures=(asleep,))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        [slept] = results
        if slept.exit_code != 0 or slept.wall_ns < 1e9 * float(params["time_s"]):
            raise ParseError(f"the client slept for {slept.wall_ns / 1e9:.1f} s in place of {params['time_s']} s")
        return Outcome({}, work=0)

    def measure_idle(self, cpu_ns: int, wall_ns: int) -> dict[str, float]:
        return {"cpu": 1e6 * cpu_ns / wall_ns}


WORKLOAD = IdleCpu()
