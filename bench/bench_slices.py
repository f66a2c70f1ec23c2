"""Short slices or long ones? The same probe in slices of 20 ms, of 100 ms, and in both, in the blocks of one campaign.

    scripts/own-host slices scripts/with-dockerd .venv/bin/python bench/bench_slices.py [BLOCKS]

For native against itself, docker and gvisor: the SD of a log ratio of a block by both estimates, and the mean with its
95 % interval, which shows whether each slice costs a platform something of its own.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

import numpy as np

from tare.analysis.grids import grid_of, metric_parts
from tare.campaign.execution import run_campaign
from tare.campaign.execution.block import CampaignWatcher
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.estimates.contrasts import Contrast, contrast
from tare.estimates.grid import weighted
from tare.estimates.looks import Look
from tare.store import Store, read_store, workload_seconds
from tare.workloads import workload_registry
from tare.workloads.base import QUICK_SLICES, Params
from tare.workloads.cpu.primes import Primes

SHAPES = {
    "20 x 20 ms": {"slice_ms": 20, "rounds": 20, "long_rounds": 0},
    "16 x 20 and 4 x 100 ms": dict(QUICK_SLICES),
    "4 x 100 ms": {"slice_ms": 100, "rounds": 4, "long_rounds": 0},
}


def shaped(number: int, shape: Params) -> Primes:
    """The same probe under another name and with other slices, so that one campaign has all of them."""
    profiles = {name: {**params, **shape} for name, params in Primes.profiles.items()}
    return type("Shaped", (Primes,), {"name": f"primes-{number}", "profiles": profiles})()


class Quiet(CampaignWatcher):
    """Prints where the campaign is."""

    def doing(self, what: str) -> None:
        """Nothing."""

    def block(self, number: int, *_: object) -> None:
        """A block begins."""
        print(f"block {number + 1}", file=sys.stderr)

    def planned(self, *_: object) -> None:
        """Nothing."""

    trial = tick = fault = planned


def main() -> None:
    """Run the campaign and print all of them."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    probes = [shaped(*each) for each in enumerate(SHAPES.values())]
    workload_registry._built_in().update({workload.name: workload for workload in probes})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "slices.tare"
        request = CampaignRequest(
            platforms=["docker", "gvisor"],
            workloads=[workload.name for workload in probes],
            blocks=blocks,
        )
        run_campaign.begin(request, file, Quiet())
        with read_store(file) as store:
            _print(store)


def _print(store: Store) -> None:
    record, seconds = store.record, workload_seconds(store.trials())
    parts = metric_parts(weighted(store.samples(), store.slices()))
    print("| slices | s a block | metric | against native | SD typical | SD totals | mean typical, 95 % |")
    print("| --- | ---: | --- | --- | ---: | ---: | --- |")
    for shape, workload in zip(SHAPES, record.workloads, strict=True):
        for metric in workload.metrics:
            grid = grid_of(record, workload, metric, parts[workload.name, metric.name])
            base = grid.of_platform("native")
            rows: dict[str, Contrast] = {"native": contrast(grid, base[1], base[:1])}
            rows |= {name: contrast(grid, grid.of_platform(name)[0], base) for name in ("docker", "gvisor")}
            for name, seen in rows.items():
                assert seen.totals is not None
                wide = Look.over_blocks(seen.pairs.logs).interval(0.95)
                ends = ", ".join(f"{100 * math.expm1(end):+.2f}" for end in (wide.point, wide.low, wide.high))
                deviations = (100 * np.std(logs, ddof=1) for logs in (seen.pairs.logs, seen.totals.logs))
                cells = (*(f"{deviation:.2f} %" for deviation in deviations), ends)
                print(f"| {shape} | {seconds[workload.name]:.1f} | {metric.name} | {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
