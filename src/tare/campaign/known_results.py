"""Campaigns with known results: the baseline against itself, and platforms beside copies with extra work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from tare.campaign.execution import run_campaign
from tare.campaign.execution.block import CampaignWatcher
from tare.campaign.execution.slowed import slowed_name
from tare.campaign.plan.campaign_plan import BASELINE_REPLICAS
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.model import CampaignStatus, Progress
from tare.store import CampaignRecord, read_store

WORKLOAD = "primes"
#: Short slices, so that many comparisons fit into an hour; the design is that of all campaigns. With four rounds a
#: single outlying slice moves the whole block (docs/benchmarks.md).
PARAMS = {"slice_ms": 20, "rounds": 8, "long_rounds": 0, "warmup_ms": 20}
#: Arms of one comparison and comparisons in a block: the fewer blocks, the less time goes into starts.
ARMS, AT_ONCE = 1 + BASELINE_REPLICAS, 3
#: Blocks of one comparison, as a campaign of some minutes has.
BLOCKS = 10
#: The extra work, as shares of the work.
ADDED = (0.005, 0.01, 0.02, 0.05)
#: Only whole events can be added: with small ones, 0.5 % of them are several in every slice.
ADDED_PARAMS = {"slice_ms": 20, "rounds": 24, "long_rounds": 0, "warmup_ms": 50, "max_prime": 2500}


def blocks_for(comparisons: int) -> int:
    """Return the number of blocks for at least this many comparisons."""
    return math.ceil(comparisons / AT_ONCE) * BLOCKS


def same_with_same(file: Path, comparisons: int, watcher: CampaignWatcher) -> None:
    """Run a campaign of the baseline against itself, in arms that differ only in their number. Raises `TareError`."""
    request = CampaignRequest(
        platforms=["native"],
        workloads=[WORKLOAD],
        params={WORKLOAD: PARAMS},
        blocks=blocks_for(comparisons),
        replicas=ARMS * AT_ONCE,
    )
    run_campaign.begin(request, file, watcher)


def is_whole(file: Path) -> bool:
    """Return True if a campaign was run to its last block. Raises `StoreError`."""
    with read_store(file) as store:
        return store.status is CampaignStatus.COMPLETE


def go_on(file: Path, watcher: CampaignWatcher, warn: Progress | None = None, agreed: str = "") -> None:
    """Resume a campaign that was ended before its last block, if it was; arguments of `resume`. Raises `TareError`."""
    if not is_whole(file):
        run_campaign.resume(file, watcher, warn=warn, agreed=agreed)


def with_added_work(file: Path, platforms: Sequence[str], blocks: int, watcher: CampaignWatcher) -> None:
    """Run a campaign of each platform beside copies of it with extra work. Raises `TareError`."""
    request = CampaignRequest(
        platforms=platforms,
        workloads=[WORKLOAD],
        params={WORKLOAD: ADDED_PARAMS},
        blocks=blocks,
        slowed=ADDED,
    )
    run_campaign.begin(request, file, watcher)


def added(record: CampaignRecord) -> list[tuple[str, str, float]]:
    """Return a campaign's copies: names of the platform and of its copy, and the share of extra work."""
    # A file of format version 2 does not have its shares: they were always these.
    shares = record.slowed or ADDED
    names = [platform.name for platform in record.platforms]
    pairs = ((name, slowed_name(name, share), share) for name in names for share in shares)
    return [pair for pair in pairs if pair[1] in names]
