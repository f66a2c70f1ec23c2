"""Campaigns whose answers are known: the baseline against itself, and platforms with work added to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from tare.campaign.execution import conduct
from tare.campaign.execution.block import Watcher
from tare.campaign.plan.plan import BASELINE_REPLICAS
from tare.campaign.plan.request import CampaignRequest
from tare.campaign.plan.slowed import slowed_name
from tare.campaign.plan.stopping import LOOK_FROM
from tare.model import Progress
from tare.store import CampaignRecord, read_store

WORKLOAD = "primes"
#: Short slices, so that many comparisons fit into an hour; the design is that of every campaign. With four rounds one
#: wild slice moves the whole block (docs/benchmarks.md).
PARAMS = {"slice_ms": 20, "rounds": 8, "warmup_ms": 20}
#: Arms of one comparison and comparisons in a block: the fewer blocks, the less time goes into starts.
ARMS, AT_ONCE = 1 + BASELINE_REPLICAS, 3
#: Blocks of one comparison: as many as a campaign has at its first look.
BLOCKS = LOOK_FROM
#: Work that is added, as shares of it.
ADDED = (0.005, 0.01, 0.02, 0.05)
#: Small events, as whole ones are added: 0.5 % of them are some in every slice.
ADDED_PARAMS = {"slice_ms": 20, "rounds": 24, "warmup_ms": 50, "max_prime": 2500}


def blocks_for(comparisons: int) -> int:
    """Blocks that hold at least so many comparisons."""
    return math.ceil(comparisons / AT_ONCE) * BLOCKS


def same_with_same(file: Path, comparisons: int, watcher: Watcher) -> None:
    """The baseline against itself, in arms that nothing but their number tells apart."""
    request = CampaignRequest(
        platforms=["native"],
        workloads=[WORKLOAD],
        params={WORKLOAD: PARAMS},
        blocks=blocks_for(comparisons),
        replicas=ARMS * AT_ONCE,
    )
    conduct.begin(request, file, watcher)


def is_whole(file: Path) -> bool:
    """Whether it was run to its last block. Raises `StoreError`."""
    with read_store(file) as store:
        return store.status == "complete"


def go_on(file: Path, watcher: Watcher, warn: Progress | None = None, agreed: str = "") -> None:
    """Finish a campaign that was ended before its last block; nothing where it is whole. Raises `TareError`."""
    if not is_whole(file):
        conduct.resume(file, watcher, warn=warn, agreed=agreed)


def with_added_work(file: Path, platforms: Sequence[str], blocks: int, watcher: Watcher) -> None:
    """Each platform beside copies of it that do more."""
    request = CampaignRequest(
        platforms=platforms,
        workloads=[WORKLOAD],
        params={WORKLOAD: ADDED_PARAMS},
        blocks=blocks,
        slowed=ADDED,
    )
    conduct.begin(request, file, watcher)


def added(record: CampaignRecord) -> list[tuple[str, str, float]]:
    """Which copy is of which platform, and its share of more work."""
    # A file of format version 2 does not tell its shares: there were no others than these.
    shares = record.slowed or ADDED
    names = [platform.name for platform in record.platforms]
    pairs = ((name, slowed_name(name, share), share) for name in names for share in shares)
    return [pair for pair in pairs if pair[1] in names]
