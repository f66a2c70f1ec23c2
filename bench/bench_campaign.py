"""What a campaign spends outside workloads and platform starts, and what the harness uses while it measures.

Goals: at most 5 % of the wall time; at most 1 % of a core. Three blocks of the quick profile on the usual platforms.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.store import read_store

BLOCKS = 3


class Watch:
    """Adds up the wall time and the harness's own CPU time between the watcher's calls."""

    def __init__(self) -> None:
        self.spans: dict[str, list[float]] = {}
        self._what = "setting up"
        self._since = (time.monotonic(), time.process_time())

    def block(self, number, spent_s, left_s, interim) -> None:
        self.doing("between blocks")

    def planned(self, trials) -> None: ...
    def tick(self, tick) -> None: ...
    def fault(self, line) -> None: ...

    def trial(self, trial) -> None:
        self.doing("storing and choosing what is next")

    def doing(self, what) -> None:
        now = (time.monotonic(), time.process_time())
        kind = "starts" if self._what.startswith(("starting", "trying")) else self._what
        kind = "workloads" if " on " in kind else kind
        span = self.spans.setdefault(kind, [0.0, 0.0])
        span[0] += now[0] - self._since[0]
        span[1] += now[1] - self._since[1]
        self._what, self._since = what, now


def main() -> None:
    """Print the table."""
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "bench.tare")
        run_campaign.begin(CampaignRequest(blocks=BLOCKS, seed=1), file, watch)
        watch.doing("over")
        with read_store(file) as store:
            failed = store.trials().filter(store.trials()["status"] != "ok").height
            count = store.trials().height
    total = sum(wall for wall, _ in watch.spans.values())
    print(f"{count} trials in {BLOCKS} blocks, {failed} of them failed or unsupported\n")
    print("| what | wall | share | harness's CPU, of a core |")
    print("| --- | --- | --- | --- |")
    for kind, (wall, cpu) in sorted(watch.spans.items(), key=lambda item: -item[1][0]):
        print(f"| {kind} | {wall:.2f} s | {wall / total:.1%} | {cpu / wall if wall else 0:.2%} |")
    outside = total - sum(watch.spans[kind][0] for kind in ("workloads", "starts") if kind in watch.spans)
    print(f"| **outside workloads and starts** | {outside:.2f} s | {outside / total:.1%} | |")


if __name__ == "__main__":
    sys.exit(main())
