"""Copies of platforms with a known share of extra work: a calibrated instrument must find it, and its size."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tare.campaign.execution.preflight import StartedPlatform
from tare.store import CampaignRecord
from tare.workloads.base import Params

#: Parameter of the agent's probes of unit `event`: the numbers in a million that are searched again.
EXTRA = "extra_ppm"


def slowed_name(platform: str, share: float) -> str:
    """Return the name of a copy with this share of extra work: ``docker+0.5%``."""
    return f"{platform}+{100 * share:g}%"


def slowed_copies(ready: Sequence[StartedPlatform], shares: Sequence[float]) -> list[StartedPlatform]:
    """Return a copy of each platform for each share, under another name; no copy is the baseline."""
    copies = []
    for original in ready:
        for share in shares:
            platform = copy.copy(original.platform)
            platform.name = slowed_name(original.platform.name, share)
            platform.__dict__["baseline"] = False
            record = original.record.model_copy(update={"name": platform.name})
            copies.append(replace(original, platform=platform, record=record))
    return copies


def originals(record: CampaignRecord) -> list[str]:
    """Return the names of a campaign's platforms without the copies, in its order."""
    names = [platform.name for platform in record.platforms]
    copies = {slowed_name(name, share) for name in names for share in record.slowed}
    return [name for name in names if name not in copies]


def extra_work(ready: Sequence[StartedPlatform], shares: Sequence[float]) -> Mapping[str, Params]:
    """Return the parameters that give the copies their extra work, by platform."""
    return {
        slowed_name(entry.platform.name, share): {EXTRA: round(1_000_000 * share)}
        for entry in ready
        for share in shares
    }
