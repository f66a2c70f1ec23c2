"""Lives of a platform against lives of the same platform: how often a difference is claimed where there is none.

Nine arms of one platform, three comparisons of three arms, ten blocks each: the verdicts are those of a campaign. For a
platform that is no baseline, its lives take the place of native's. Arguments: the platform (native), and the blocks.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench_clock import Silent

from tare.analysis.calibration import trust
from tare.campaign.execution import run_campaign
from tare.campaign.known_results import ARMS, AT_ONCE, BLOCKS
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.platforms import platform_contract, platform_registry
from tare.store import read_store

#: One life a trial: many short blocks.
PARAMS = {"whole-life": {"time_s": 0}}


def main() -> None:
    """Print a row a metric."""
    name, blocks = (*sys.argv[1:], "native", "20")[:2] if len(sys.argv) != 2 else (sys.argv[1], "20")
    if name != "native":
        stand_in(name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "aa.tare"
        request = CampaignRequest(
            platforms=["native"],
            workloads=["whole-life"],
            params=PARAMS,
            blocks=int(blocks),
            replicas=ARMS * AT_ONCE,
        )
        run_campaign.begin(request, file, Silent())
        with read_store(file) as store:
            shown = trust(store.record, store.samples(), 1.0, BLOCKS)
    false = sum(metric.false_alarms.count for metric in shown)
    print(f"{name}: {false} of {sum(metric.false_alarms.of for metric in shown)} comparisons show a difference")
    print("| metric | comparisons | false | 95 % intervals that hold zero | half of an interval |")
    print("| --- | --- | --- | --- | --- |")
    for metric in shown:
        alarms = metric.false_alarms
        print(f"| {metric.metric} | {alarms.of} | {alarms.count} | {metric.covered.count} | {metric.half_width:.1%} |")


def stand_in(name: str) -> None:
    """Let the baseline live as another platform does."""
    [native], [other] = platform_registry.choose(["native"]), platform_registry.choose([name])
    prepare, close = native.prepare, native.close

    def prepared(image):
        platform_contract.prepared(other, image)
        return prepare(image)

    def closed() -> None:
        other.close()
        close()

    platform_contract.detected(other)
    native.life, native.prepare, native.close = other.life, prepared, closed


if __name__ == "__main__":
    main()
