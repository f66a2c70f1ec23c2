"""How long 10,000 hosts take to be merged, and in how much memory: `tare fleet report` without the reading of files.

Hosts are invented: each has blocks of log ratios for every figure, as a campaign's file would give them, and 1 in 100
is odd. Each host is reduced to its effects as it comes, as the command does it; then the model is fitted. Goal: 60 s
of processor time and 1 GiB.

    .venv/bin/python bench/bench_fleet.py [HOSTS] [FIGURES] [BLOCKS]
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from tare.analysis.comparisons.merged_hosts import Fleet, Gathering, merge
from tare.analysis.comparisons.sides import MetricSide
from tare.analysis.comparisons.summaries import Summary
from tare.model import Design, Direction, Family, Mode
from tare.store import CampaignRecord, MetricRecord, PlatformRecord, ResourceRecord, WorkloadRecord

HOSTS, FIGURES, BLOCKS = 10_000, 300, 12
PLATFORMS, SPREAD, NOISE, ODD = 10, 0.03, 0.02, 100


def record(host: int, figures: int) -> CampaignRecord:
    """A campaign of `PLATFORMS` platforms, and so many workloads that there are the figures."""
    workloads = [
        WorkloadRecord(
            name=f"workload-{number}", title="", family=Family.CPU, mode=Mode.RUN, margin=0.05, work_unit="event",
            params={}, metrics=[MetricRecord(name="time", unit="s", direction=Direction.LOWER, title="")],
        )
        for number in range(figures // PLATFORMS)
    ]  # fmt: skip
    names = ["native", *(f"platform-{number}" for number in range(PLATFORMS))]
    return CampaignRecord(
        id=f"campaign-{host}", created=1.7e9 + host, tare_version="0.1.0", seed=1, profile="bench", baseline="native",
        arms=[(name, 0) for name in names],
        platforms=[PlatformRecord(name=name, title=name, version="1") for name in names], workloads=workloads,
        resources=ResourceRecord(cpus=[0], memory_bytes=1 << 29), image={}, agent_hash="", design=Design.BLOCKS,
        host={"kernel": f"6.1.{host % 3}", "cpu": {"model": f"model {host % 4}", "microcode": f"0x{host % 7}"}},
    )  # fmt: skip


def gathered(hosts: int, figures: int, blocks: int) -> tuple[Gathering, float]:
    """All hosts as they are read, and the processor time that it took to reduce them."""
    rng = np.random.default_rng(43)
    gathering, seconds = Gathering(), 0.0
    centres = rng.uniform(0.0, 0.5, figures)
    base = record(0, figures)
    names = [
        (platform.name, workload.name, "time")
        for platform in base.platforms
        if platform.name != base.baseline
        for workload in base.workloads
    ]
    for host in range(hosts):
        effects = centres + rng.normal(0, SPREAD, figures) + (8 * SPREAD if host % ODD == 0 else 0.0)
        logs = effects[:, None] + rng.normal(0, NOISE, (figures, blocks))
        facts = record(host, PLATFORMS).model_copy(update={"workloads": base.workloads})
        began = time.process_time()
        sides = {name: MetricSide(row, 1.0, unfit=False) for name, row in zip(names, logs, strict=True)}
        gathering.add(f"host-{host}", Summary(f"host-{host}.tare", facts, sides))
        seconds += time.process_time() - began
    return gathering, seconds


def main() -> None:
    """Print a row: hosts, figures, blocks, seconds, memory, and what was found."""
    given = [int(word) for word in sys.argv[1:4]]
    hosts, figures, blocks = given + [HOSTS, FIGURES, BLOCKS][len(given) :]
    gathering, reduced = gathered(hosts, figures, blocks)
    before = _peak_mib()
    wall, cpu = time.monotonic(), time.process_time()
    fleet = merge(gathering)
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    found, wrong = _found(fleet)
    heads = ("hosts", "figures", "blocks", "reducing, CPU s", "merging, CPU s", "merging, wall s",
             "peak MiB (before merging)", "odd hosts found", "called odd")  # fmt: skip
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    print(f"| {hosts:,} | {len(fleet.figures)} | {blocks} | {reduced:.1f} | {cpu:.1f} | {wall:.1f} |"
          f" {_peak_mib():.0f} ({before:.0f}) | {found} of {len(range(0, hosts, ODD))} | {wrong} others |")  # fmt: skip


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _found(fleet: Fleet) -> tuple[int, int]:
    """Planted hosts that are odd in some figure, and others that are."""
    odd = {fleet.hosts[place].name for place in fleet.odd_places}
    planted = {f"host-{host}" for host in range(0, len(fleet.hosts), ODD)}
    return len(odd & planted), len(odd - planted)


if __name__ == "__main__":
    main()
