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
from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.host.tuning import load
from tare.model import Design
from tare.store import read_store

PLATFORMS = ["docker", "gvisor"]
WORKLOADS = ["primes", "sysbench-cpu", "stream", "sysbench-memory", "sysbench-fileio-seqwr", "iperf3-tcp"]
SECONDS, TIMES = 180.0, 2
NEIGHBOURS = 2


class Silent:
    """Nothing is drawn while it measures."""

    def block(self, number, spent_s, left_s, interim) -> None: ...
    def planned(self, trials) -> None: ...
    def doing(self, what) -> None: ...
    def tick(self, tick) -> None: ...
    def fault(self, line) -> None: ...
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
                campaigns = [campaign(workloads, design, seconds, seed) for seed in range(times)]
            for workload in workloads:
                of_workload = [result for results in campaigns for result in results if result.workload == workload]
                errors[noise, design] += [abs(result.noise_floor.interval.point) for result in of_workload]
                print(row(noise, design, workload, of_workload), flush=True)
    print("\n| load | A/A error, root of mean squares: sequential | blocks and slices | times better |")
    print("| --- | --- | --- | --- |")
    for noise in ("quiet", "loaded"):
        sequential, blocks = (_rms(errors[noise, design]) for design in (Design.SEQUENTIAL, Design.BLOCKS))
        print(f"| {noise} | {sequential:.2%} | {blocks:.2%} | {sequential / blocks:.1f} |")


def campaign(workloads: list[str], design: Design, seconds: float, seed: int) -> list[MetricResult]:
    """One campaign's results, both headline and CPU cost."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.tare"
        request = CampaignRequest(
            platforms=PLATFORMS, workloads=workloads, budget_s=seconds, seed=seed, design=design, precision=0.0
        )
        run_campaign.begin(request, file, Silent())
        with read_store(file) as store:
            results = analyse(store.record, store.samples(), store.trials())
            headlines = {workload.name: workload.metrics[0].name for workload in store.record.workloads}
    return [result for result in results if result.metric in (headlines[result.workload], "cpu-cost")]


def row(noise: str, design: Design, workload: str, seen: list[MetricResult]) -> str:
    """Medians over campaigns and the two metrics; a false alarm is an A/A interval that excludes zero."""
    floors = [result.noise_floor for result in seen]
    error = _rms([abs(floor.interval.point) for floor in floors])
    width = statistics.median(floor.interval.half_width for floor in floors)
    widths = [_width(seen, name) for name in PLATFORMS]
    alarms = sum(floor.excludes_zero for floor in floors)
    shown = design if design is Design.SEQUENTIAL or workload not in ("primes", "stream") else "slices"
    cells = [noise, shown, workload, f"{error:.2%}", f"{width:.2%}", *widths, f"{alarms} of {len(floors)}"]
    return f"| {' | '.join(cells)} |"


def _width(results: list[MetricResult], name: str) -> str:
    widths = [
        platform.overhead.half_width
        for result in results
        for platform in result.platforms
        if platform.platform == name and platform.overhead is not None
    ]
    return f"{statistics.median(widths):.2%}" if widths else "none"


def _rms(values: list[float]) -> float:
    return math.sqrt(statistics.fmean(value**2 for value in values))


if __name__ == "__main__":
    main()
