"""The noise floor of the sliced probe: native against itself for two minutes, as `tare run` does it.

Goal: A/A half-width at most 0.3 % in wall time after two minutes on a quiet machine.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from bench_campaign import Watch

from tare.campaign import conduct
from tare.campaign.order import Order
from tare.report.build import build

BUDGET_S = 120.0


def main() -> None:
    """Print the A/A figures."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "bench.tare")
        conduct.begin(Order(platforms=["native"], workloads=["primes"], budget_s=BUDGET_S, seed=1), file, Watch())
        report = build(file)
    print(f"load before: {load:.2f}; trials contaminated by steal: {report.contaminated.n_trials}\n")
    print("| metric | A/A | 95 % interval | half-width | blocks |")
    print("| --- | --- | --- | --- | --- |")
    for result in report.results:
        floor = result.noise_floor
        interval = f"{floor.low_percent:+.2f} to {floor.high_percent:+.2f} %"
        print(
            f"| {result.workload} {result.metric} | {floor.point_percent:+.2f} % | {interval} "
            f"| {floor.half_width_percent:.2f} % | {floor.n_blocks} |"
        )


if __name__ == "__main__":
    sys.exit(main())
