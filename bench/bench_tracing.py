"""The cost of counting system calls, and of sampling stacks: unit costs on native, with and without.

    .venv/bin/python bench/bench_tracing.py [ROUNDS]

A turn is one run of the agent's probe. The conditions of a round come in random order: nothing is on; the calls of
another control group are counted; the instance's calls are counted; stacks are sampled, the instance's among them.
Printed are the extra time of a call and the ratio to off, as means over rounds with their 95 % intervals (Student's t,
of the logarithms for the ratio). Goal: none; the figure is what a user must know.
"""

from __future__ import annotations

import math
import random
import statistics
import sys

from scipy import stats

from tare.campaign.execution.slices import run_slices
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.plan.campaign_plan import make_jobs
from tare.campaign.plan.campaign_request import DEFAULT_MEMORY
from tare.campaign.plan.schedule import Stage
from tare.features.kernel.counters.stack_sampler import StackCounter
from tare.features.kernel.counters.syscalls import SyscallCounter
from tare.features.kernel.execution.walk import NO_GROUP
from tare.host.cgroup import path_of
from tare.image import image_build
from tare.model import Arm, Resources
from tare.platforms import platform_registry
from tare.workloads import workload_registry as workloads

WORKLOADS = ("call-getpid", "call-read-1b")
ROUNDS = 40
SLICE_MS, SLICES = 100, 2
OFF, ANOTHERS, ITS_OWN = "off", "on, another's calls", "on, the instance's calls"
SAMPLED = "stacks are sampled"


def main() -> None:
    """Print a row a workload and condition."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    [native] = platform_registry.choose(["native"])
    native.prepare(image)
    params = {name: {"slice_ms": SLICE_MS, "rounds": SLICES, "warmup_ms": 50} for name in WORKLOADS}
    jobs = make_jobs(workloads.choose(WORKLOADS), "quick", params)
    print(f"{rounds} rounds\n")
    print("| call | counter | a call takes | more than off | ratio to off |")
    print("| --- | --- | --- | --- | --- |")
    with HostSession() as host:
        launcher, _ = host.prepare(image, Resources(default_cpus(), DEFAULT_MEMORY))
        running = launcher.start(native, Arm("native"), measured=False)
        try:
            for job in jobs:
                for line in rows(job, running, rounds):
                    print(line, flush=True)
        finally:
            running.stop()


def rows(job, running, rounds) -> list[str]:
    """All conditions in turn, then a line each."""
    generator = random.Random(1)
    group = running.instance.spec.group.path
    on = {
        OFF: None,
        ANOTHERS: (SyscallCounter, path_of(NO_GROUP)),
        ITS_OWN: (SyscallCounter, group),
        SAMPLED: (StackCounter, group),
    }
    took: dict[str, list[float]] = {name: [] for name in on}
    for _ in range(rounds):
        for name in generator.sample(list(on), len(on)):
            took[name].append(nanoseconds(job, running, on[name]))
    lines = []
    for name, ns in took.items():
        line = f"| {job.workload.name} | {name} | {statistics.median(ns):.1f} ns |"
        if name != OFF:
            cost = interval([with_it - off for with_it, off in zip(ns, took[OFF], strict=True)])
            logs = interval([math.log(with_it / off) for with_it, off in zip(ns, took[OFF], strict=True)])
            point, low, high = (math.exp(value) for value in logs)
            line += f" {cost[0]:+.1f} ns ({cost[1]:+.1f} to {cost[2]:+.1f}) | {point:.3f} ({low:.3f} to {high:.3f}) |"
        else:
            line += " | |"
        lines.append(line)
    return lines


def nanoseconds(job, running, on) -> float:
    """How long a call takes in one run of the probe; ``on``: with which counter, of which group; None: without."""
    counter, group = on or (None, None)
    counter = counter and counter()
    try:
        if counter is not None:
            counter.start(group)
        stage = Stage(job.workload.name, job.workload.mode, (running.arm,), ((running.arm,),) * job.rounds)
        sliced = run_slices(job.workload, job.params, stage, {running.arm: running})[running.arm]
        if sliced.error is not None:
            raise sliced.error
        headline = job.workload.metrics[0].name
        return 1e9 / statistics.mean(sample.value for sample in sliced.samples if sample.metric == headline)
    finally:
        if counter is not None:
            counter.stop()


def interval(values) -> tuple[float, float, float]:
    """Mean and its 95 % interval."""
    mean = statistics.mean(values)
    half = stats.t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


if __name__ == "__main__":
    main()
