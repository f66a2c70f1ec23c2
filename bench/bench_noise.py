"""What a minute buys: the half-width of native against itself by how long its trials are, each workload by itself.

The trials of `quick` as they are and as they were, in turn within one run, so that both see the same minutes.

    .venv/bin/python bench/bench_noise.py [BLOCKS [TIMES [LOAD [WORKLOAD ...]]]]
"""

from __future__ import annotations

import contextlib
import math
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from bench_campaign import Watch

from tare.analysis.calibration import Trust, trust
from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.host.tuning import load
from tare.store import block_durations, read_store
from tare.workloads.base import Params

BLOCKS, TIMES = 5, 3
#: Two comparisons of three arms at once; rounds are about as long as with the usual platforms.
ARMS = 6
NEIGHBOURS = 2
#: What the trials of `quick` were until 2026-11-22, where they have changed.
BEFORE: dict[str, Params] = {
    "primes": {"rounds": 8, "warmup_ms": 200},
    "stream": {"rounds": 6},
    "udp-rtt": {"time_s": 1.0, "warmup_s": 0.2},
    "sysbench-fileio-seqwr": {"passes": 0},
}


def main() -> None:
    """Print a row a workload, metric and length."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    times = int(sys.argv[2]) if len(sys.argv) > 2 else TIMES
    loaded = len(sys.argv) > 3 and sys.argv[3] == "loaded"
    names = sys.argv[4:] or list(BEFORE)
    measurements: dict[tuple[str, str, str], list[Trust]] = defaultdict(list)
    with load.busy(NEIGHBOURS) if loaded else contextlib.nullcontext():
        for _ in range(times):
            for name in names:
                for when, params in (("before", BEFORE[name]), ("now", {})):
                    for measurement in measured(name, params, blocks):
                        measurements[name, measurement.metric, when].append(measurement)
    print("| workload | metric | blocks a minute and pair: before, now | half-width a minute and pair: before, now |")
    print("| --- | --- | --- | --- |")
    for name, metric, _ in [key for key in measurements if key[2] == "now"]:
        counts, widths = zip(*(a_minute(measurements[name, metric, when]) for when in ("before", "now")), strict=True)
        print(f"| {name} | {metric} | {counts[0]:.0f}, {counts[1]:.0f} | ±{widths[0]:.2%}, ±{widths[1]:.2%} |")


def measured(name: str, params: Params, blocks: int) -> list[Trust]:
    """A campaign of native against itself: what its blocks say, by metric."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "bench.tare")
        request = CampaignRequest(
            platforms=["native"],
            workloads=[name],
            params={name: params},
            blocks=blocks,
            replicas=ARMS,
        )
        run_campaign.begin(request, file, Watch())
        with read_store(file) as store:
            trials = store.trials()
            return trust(store.record, store.samples(), sum(block_durations(trials).values()) / blocks, blocks)


def a_minute(several: list[Trust]) -> tuple[float, float]:
    """Blocks of three arms in a minute, and the half-width then, from the mean length and variance of blocks."""
    variance = sum(measurement.block_sd**2 for measurement in several) / len(several)
    blocks = 60 * len(several) / sum(measurement.seconds for measurement in several)
    return blocks, 1.96 * math.sqrt(variance / blocks)


if __name__ == "__main__":
    sys.exit(main())
