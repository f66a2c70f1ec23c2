"""The same measuring time by three designs: what each says of no difference, and how sure it is.

Native twice, docker and gvisor; CPU, memory, file and network; quiet, and beside two busy processes a CPU. `sequential`
is one platform after the other with all of its repetitions; `blocks` is every platform afresh in random order, each
running alone; where a workload has slices, all instances in turn, that is the third design (primes and STREAM against
the same loops as programs, sysbench cpu and memory, which have none).

    scripts/with-dockerd .venv/bin/python bench/bench_designs.py [SECONDS [TIMES [WORKLOAD ...]]]
"""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tare.analysis import MetricResult, analyse
from tare.campaign.execution import conduct
from tare.campaign.plan.request import CampaignRequest
from tare.host import load
from tare.model import Design
from tare.store import read_store

PLATFORMS = ["docker", "gvisor"]
WORKLOADS = ["primes", "sysbench-cpu", "stream", "sysbench-memory", "sysbench-fileio-seqwr", "iperf3-tcp"]
SECONDS, TIMES = 180.0, 2
NEIGHBOURS = 2


class Silent:
    """Nothing is drawn while it measures."""

    def block(self, number, spent_s, left_s, interim) -> None: ...
    def doing(self, what) -> None: ...
    def trial(self, trial) -> None: ...


def main() -> None:
    """Run the campaigns, and print a row a load, design and workload."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    times = int(sys.argv[2]) if len(sys.argv) > 2 else TIMES
    workloads = sys.argv[3:] or WORKLOADS
    print("| load | design | workload | A/A error | A/A ± | docker ± | gvisor ± | false alarms |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for noise in ("quiet", "loaded"):
        for design in (Design.SEQUENTIAL, Design.BLOCKS):
            neighbours = load.busy(NEIGHBOURS) if noise == "loaded" else contextlib.nullcontext()
            with neighbours:
                found = [campaign(workloads, design, seconds, seed) for seed in range(times)]
            for workload in workloads:
                seen = [one for results in found for one in results if one.workload == workload]
                errors[noise, design] += [abs(one.noise_floor.interval.point) for one in seen]
                print(row(noise, design, workload, seen), flush=True)
    print("\n| load | A/A error, root of mean squares: sequential | blocks and slices | times better |")
    print("| --- | --- | --- | --- |")
    for noise in ("quiet", "loaded"):
        one, other = (_rms(errors[noise, design]) for design in (Design.SEQUENTIAL, Design.BLOCKS))
        print(f"| {noise} | {one:.2%} | {other:.2%} | {one / other:.1f} |")


def campaign(workloads: list[str], design: Design, seconds: float, seed: int) -> list[MetricResult]:
    """One campaign's results, both headline and CPU cost."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.tare"
        order = CampaignRequest(
            platforms=PLATFORMS, workloads=workloads, budget_s=seconds, seed=seed, design=design, precision=0.0
        )
        conduct.begin(order, file, Silent())
        with read_store(file) as store:
            results = analyse(store.record, store.samples(), store.trials())
            headlines = {workload.name: workload.metrics[0].name for workload in store.record.workloads}
    return [one for one in results if one.metric in (headlines[one.workload], "cpu-cost")]


def row(noise: str, design: Design, workload: str, seen: list[MetricResult]) -> str:
    """Medians over campaigns and the two metrics; a false alarm is an A/A interval that excludes zero."""
    floors = [one.noise_floor for one in seen]
    error = _rms([abs(one.interval.point) for one in floors])
    width = statistics.median(one.interval.half_width for one in floors)
    others = [_width(seen, name) for name in PLATFORMS]
    alarms = sum(one.excludes_zero for one in floors)
    shown = design if design is Design.SEQUENTIAL or workload not in ("primes", "stream") else "slices"
    cells = [noise, shown, workload, f"{error:.2%}", f"{width:.2%}", *others, f"{alarms} of {len(floors)}"]
    return f"| {' | '.join(cells)} |"


def _width(seen: list[MetricResult], name: str) -> str:
    widths = [
        platform.overhead.half_width
        for one in seen
        for platform in one.platforms
        if platform.platform == name and platform.overhead is not None
    ]
    return f"{statistics.median(widths):.2%}" if widths else "none"


def _rms(values: list[float]) -> float:
    return math.sqrt(statistics.fmean(value**2 for value in values))


if __name__ == "__main__":
    main()
