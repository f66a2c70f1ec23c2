"""What becomes of a guest's figures when its clock is wrong: one campaign three times, the second with a slow clock.

    .venv/bin/python bench/bench_clock.py [PLATFORM]

An emulated guest is told how fast its time stamp counter runs. In the second campaign it is told 1.25 times that, so
that its clock runs at 0.8 of the host's, and all that it times seems faster. Printed is a row for each campaign and
metric: the median of all samples in the file, the bounds of the clock's rate, and how the trials ended. Goal: all
trials of the second campaign fail with the clock as the reason, and no trial of the others does.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from unittest import mock

import polars as pl

from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.host.facts import tsc
from tare.store import Store, read_store

WORKLOADS = ("primes", "sysbench-cpu")
FACTOR = 1.25


class Silent:
    """A watcher that shows nothing."""

    def block(self, number, spent_s, left_s, interim) -> None: ...
    def planned(self, trials) -> None: ...
    def doing(self, what) -> None: ...
    def tick(self, tick) -> None: ...
    def trial(self, trial) -> None: ...
    def fault(self, line) -> None: ...


def main() -> None:
    """Print the table."""
    platform = sys.argv[1] if len(sys.argv) > 1 else "qemu-tcg"
    told = tsc.khz()
    print("| campaign | metric | median | clock inside, rate | trials |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for number, factor in enumerate((1.0, FACTOR, 1.0)):
            file = Path(folder, f"{number}.tare")
            request = CampaignRequest(platforms=[platform], workloads=list(WORKLOADS), blocks=2, seed=1)
            with mock.patch.object(tsc, "khz", return_value=round(factor * told)):
                run_campaign.begin(request, file, Silent())
            with read_store(file) as store:
                for line in rows(store, platform):
                    print(f"| {'slow clock' if factor > 1 else 'as it is'} | {line} |", flush=True)


def rows(store: Store, platform: str) -> list[str]:
    """The rows of a campaign, whatever its trials' ends were."""
    figures = pl.DataFrame([row for row in store.rows() if row["platform"] == platform], infer_schema_length=None)
    trials = store.trials().filter(pl.col("platform").cast(pl.String) == platform)
    lines = []
    for workload in WORKLOADS:
        timed = trials.filter(pl.col("workload").cast(pl.String) == workload)
        low, high = timed.select(pl.col("clock_rate_low").min(), pl.col("clock_rate_high").max()).row(0)
        bounds = f"{100 * low:+.2f} to {100 * high:+.2f} %"
        ends = "; ".join(dict.fromkeys(reason or "ok" for reason in timed["reason"]))
        for metric, part in figures.filter(pl.col("workload") == workload).group_by("metric", maintain_order=True):
            lines.append(f"{workload}, {metric[0]} | {part.select(pl.median('value')).item():.4g} | {bounds} | {ends}")
    return lines


if __name__ == "__main__":
    main()
