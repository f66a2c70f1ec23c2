"""Facts in which platforms differ from the baseline, by the fairness manifest; some forbid a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tare.store import CampaignRecord

#: Facts (keys of the manifest) that must be equal, or else the comparison is not of the platforms.
ALIKE = ("host", "image", "agent", "cpus pinned", "cpu quota", "cpus seen inside", "memory limit")
#: MTU, in bytes, of the link that an instance's packets to the client pass first; a text if it is unknown.
MTU = "mtu inside"
#: Facts that follow from a platform or from its set-up: listed for the reader, without a judgement.
OWN = (
    "limit of swap",
    "limit of pids",
    "limit of nofile",
    "limit of memlock",
    "limit of core",
    "limit of stack",
    "limit of thp",
    "memory seen inside",
    "kernel seen inside",
    "clock source inside",
    "tcp congestion control",
    MTU,
    "data filesystem inside",
    "disk cache",
    "network path",
    "huge pages inside",
    "cpu scheduler",
    "i/o scheduler of /data",
    "socket limits inside",
    "filesystem of /tmp",
    "restrictions of /",
    "restrictions of /data",
    "fsync on /",
    "security inside",
    "security outside",
    "security beside",
    "mitigations inside",
    "daemons' cpus",
    "priority",
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that differs. ``unfair``: it forbids the comparison; False if it is the platform's own."""

    platform: str
    fact: str
    value: Any  # As recorded; None: unknown.
    baseline: Any
    unfair: bool


def differences(record: CampaignRecord) -> list[Difference]:
    """Return all facts in which platforms differ from the baseline, in the order of the record's platforms."""
    baseline_facts = record.fairness.get(record.baseline)
    if not isinstance(baseline_facts, dict):
        return []
    differing = []
    for platform in record.platforms:
        facts = record.fairness.get(platform.name)
        if platform.name == record.baseline or not isinstance(facts, dict):
            continue
        for fact in (*ALIKE, *OWN):
            value, baseline_value = facts.get(fact), baseline_facts.get(fact)
            if value != baseline_value:
                differing.append(Difference(platform.name, fact, value, baseline_value, fact in ALIKE))
    return differing


def refusals(record: CampaignRecord) -> dict[str, tuple[str, ...]]:
    """Return the facts that forbid a comparison, by platform. Platforms requested by name are always compared."""
    unfair: dict[str, list[str]] = {}
    for difference in differences(record):
        if difference.unfair and difference.platform not in record.asked:
            unfair.setdefault(difference.platform, []).append(difference.fact)
    return {name: tuple(facts) for name, facts in unfair.items()}


def unlike_mtus(record: CampaignRecord) -> dict[str, tuple[int, int]]:
    """Return the MTUs of a platform's link and of the baseline's, by platform, if both are known and differ."""
    return {
        difference.platform: (difference.value, difference.baseline)
        for difference in differences(record)
        if difference.fact == MTU and isinstance(difference.value, int) and isinstance(difference.baseline, int)
    }
