"""What a platform had otherwise than the baseline, by the campaign's fairness manifest, and what that forbids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tare.store import CampaignRecord

#: Facts that must be alike, or what is compared is not the platform: the words say what it is then.
ALIKE: Mapping[str, str] = {
    "host": "another machine",
    "image": "other bits",
    "agent": "another agent",
    "cpus pinned": "other CPUs",
    "cpus seen inside": "another number of CPUs",
    "memory limit": "another memory limit",
}
#: Facts that a platform is made of, or that follow from it: listed, and left to the reader.
OWN = (
    "memory seen inside",
    "kernel seen inside",
    "clock source inside",
    "tcp congestion control",
    "data filesystem inside",
    "disk cache",
    "network path",
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that differs. ``unfair``: what it makes of the comparison; None where it is the platform's own."""

    platform: str
    fact: str
    value: str
    baseline: str
    unfair: str | None


def differences(record: CampaignRecord) -> list[Difference]:
    """All facts in which platforms differ from the baseline, in the order of the record's platforms."""
    mine = record.fairness.get(record.baseline)
    if not isinstance(mine, dict):
        return []
    found = []
    for platform in record.platforms:
        theirs = record.fairness.get(platform.name)
        if platform.name == record.baseline or not isinstance(theirs, dict):
            continue
        for fact in (*ALIKE, *OWN):
            here, there = theirs.get(fact), mine.get(fact)
            if here != there:
                found.append(Difference(platform.name, fact, _say(here), _say(there), ALIKE.get(fact)))
    return found


def refusals(record: CampaignRecord) -> dict[str, str]:
    """Why a platform is not compared, by its name: it had what makes that unfair, and nobody asked for it by name."""
    unfair: dict[str, list[str]] = {}
    for one in differences(record):
        if one.unfair is not None and one.platform not in record.asked:
            unfair.setdefault(one.platform, []).append(one.unfair)
    return {
        name: f"refused: not alike, it has {', '.join(why)};"
        f" asked for by its name (-p {name}) it is compared all the same"
        for name, why in unfair.items()
    }


def _say(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "unknown" if value is None else str(value)
