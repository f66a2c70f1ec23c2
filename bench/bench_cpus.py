"""What the number of CPUs changes: gVisor's unit costs with its fast path on and off, and the width of A/A intervals.

    .venv/bin/python bench/bench_cpus.py [BLOCKS]

A block starts eight instances afresh: of native and of gVisor two with the probes' CPU alone and two with all CPUs that
campaigns give. Slices of all of them are in turn, so each ratio is of its own minute. Printed are a unit's cost, its
ratio to native's with the same CPUs and what more CPUs make of it, as geometric means over blocks with 95 % intervals
(Student's t), and native's A/A half-widths. Goal: none; docs/benchmarks.md tells the figures.
"""

from __future__ import annotations

import math
import os
import random
import sys
import time
from dataclasses import replace

import numpy as np

from tare.campaign.execution.slices import Sliced, run_slices
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances.launcher import InstanceLauncher, stop_all
from tare.campaign.plan.campaign_plan import WorkloadJob, make_jobs
from tare.campaign.plan.campaign_request import DEFAULT_MEMORY
from tare.campaign.plan.schedule import Stage
from tare.estimates.intervals import Interval, t_interval
from tare.image import image_build
from tare.model import Arm, Mode, Resources
from tare.platforms import platform_registry
from tare.workloads import workload_registry as workloads
from tare.workloads.base import SliceWorkload

WORKLOADS = ("call-getpid", "call-read-1b", "call-stat", "primes")
BLOCKS, ROUNDS, SLICE_MS = 10, 6, 50
FEW, MANY = "one", "all"
#: By workload and metric: a figure for each block, by platform, CPUs and replica; nan: none.
Figures = dict[tuple[str, str], dict[tuple[str, str, int], list[float]]]


def main() -> None:
    """Print a row a workload, metric and number of CPUs."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    params = {name: {"slice_ms": SLICE_MS, "rounds": ROUNDS, "warmup_ms": 50} for name in WORKLOADS}
    jobs = make_jobs(workloads.choose(WORKLOADS), "quick", params)
    figures: Figures = {}
    with HostSession() as host:
        cpus = default_cpus()
        launcher, _ = host.prepare(image, Resources(cpus, DEFAULT_MEMORY))
        for number in range(blocks):
            one_block(launcher, cpus, jobs, random.Random(number), figures)
    when, load = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), os.getloadavg()[1]
    print(f"{blocks} blocks, {when}, {os.cpu_count()} CPUs, load {load:.1f}; all: {len(cpus)} CPUs\n")
    print("| workload | native | gVisor to native, one CPU | gVisor to native, all CPUs | gVisor, all to one | A/A |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (name, metric), by_arm in figures.items():
        print(row(f"{name}, {metric}", by_arm), flush=True)


def one_block(
    launcher: InstanceLauncher, cpus: tuple[int, ...], jobs: list[WorkloadJob], order: random.Random, figures: Figures
) -> None:
    """Start all arms, run each workload's slices in all of them in turn, and end them."""
    keys = [(name, many, replica) for name in ("native", "gvisor") for many in (FEW, MANY) for replica in (0, 1)]
    order.shuffle(keys)
    running = {}
    resources = launcher.resources
    try:
        for number, (name, many, replica) in enumerate(keys):
            launcher.resources = replace(resources, cpus=cpus if many == MANY else (resources.probe_cpu,))
            [platform] = platform_registry.choose([name])
            arm = Arm(name, number)
            running[arm] = (launcher.start(platform, arm, measured=False), (name, many, replica))
        for job in jobs:
            arms = tuple(running)
            rounds = tuple(tuple(order.sample(arms, len(arms))) for _ in range(ROUNDS))
            assert isinstance(job.workload, SliceWorkload)
            stage = Stage(job.workload.name, Mode.SLICES, arms, rounds)
            sliced = run_slices(job.workload, job.params, stage, {arm: live for arm, (live, _) in running.items()})
            for arm, (_, key) in running.items():
                note(job.workload.name, key, sliced[arm], figures)
    finally:
        launcher.resources = resources
        stop_all(live for live, _ in running.values())


def note(name: str, key: tuple[str, str, int], sliced: Sliced, figures: Figures) -> None:
    """Add one arm's means of a block: the time of a unit of work by the wall, and its CPU time, in ns."""
    if sliced.error is not None:
        raise sliced.error
    for metric in (workloads.get(name).metrics[0].name, "cpu-cost"):
        values = [sample.value for sample in sliced.samples if sample.metric == metric]
        # A busy host reads the counters so late that no slice of an arm has a CPU time: then this block has none of it.
        middle = float(np.median(values)) if values else math.nan
        figures.setdefault((name, metric), {}).setdefault(key, []).append(
            middle if metric == "cpu-cost" else 1e9 / middle
        )


def row(label: str, by_arm: dict[tuple[str, str, int], list[float]]) -> str:
    """A row of the table."""

    sound = ~np.isnan(list(by_arm.values())).any(axis=0)

    def log(platform: str, many: str, replica: int) -> np.ndarray:
        return np.log(np.asarray(by_arm[platform, many, replica])[sound])

    def logs(platform: str, many: str) -> np.ndarray:
        return (log(platform, many, 0) + log(platform, many, 1)) / 2

    over = [told(logs("gvisor", many) - logs("native", many)) for many in (FEW, MANY)]
    gained = told(logs("gvisor", MANY) - logs("gvisor", FEW))
    widths = []
    for platform in ("native", "gvisor"):
        for many in (FEW, MANY):
            apart = t_interval(log(platform, many, 0) - log(platform, many, 1), 0.95)
            widths.append(f"{platform} {many} ±{100 * apart.half_width:.1f} %")
    cost = f"{math.exp(float(np.mean(logs('native', FEW)))):,.0f} ns"
    return f"| {label} ({sound.sum()} blocks) | {cost} | {over[0]} | {over[1]} | {gained} | {', '.join(widths)} |"


def told(logs: np.ndarray) -> str:
    """A mean of log ratios as a ratio with its interval."""
    interval = t_interval(logs, 0.95)
    ratios = Interval(*(math.exp(value) for value in (interval.point, interval.low, interval.high)))
    return f"{ratios.point:.2f} × ({ratios.low:.2f} to {ratios.high:.2f})"


if __name__ == "__main__":
    main()
