"""Texts of facts in which a platform differs from the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: What was compared then, by the fact that differs.
UNFAIR: Mapping[str, str] = {
    "host": "another machine",
    "image": "other bits",
    "agent": "another agent",
    "cpus pinned": "other CPUs",
    "cpu quota": "another CPU quota",
    "cpus seen inside": "another number of CPUs",
    "memory limit": "another memory limit",
}


def not_alike(facts: Iterable[str], platform: str) -> str:
    """Return why a platform is not compared, and how to compare it nevertheless."""
    differences = ", ".join(UNFAIR[fact] for fact in facts)
    return (
        f"refused: not alike, it has {differences}; asked for by its name (-p {platform}) it is compared all the same"
    )


def mtu_remark(mtu: int, baseline_mtu: int, baseline: str) -> str:
    """Return what network figures are to be read with where a platform's link has another MTU than the baseline's."""
    return f"its packets may be of another size: the MTU of its own link is {mtu}, {baseline}'s {baseline_mtu}"


def fact_text(value: Any) -> str:
    """A fact of the manifest as text."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {fact_text(entry)}" for name, entry in value.items())
    return "unknown" if value is None else str(value)
