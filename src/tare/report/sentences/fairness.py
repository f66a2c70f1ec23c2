"""What a platform had otherwise than the baseline, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: What it is then that was compared, by the fact that was not alike.
UNFAIR: Mapping[str, str] = {
    "host": "another machine",
    "image": "other bits",
    "agent": "another agent",
    "cpus pinned": "other CPUs",
    "cpus seen inside": "another number of CPUs",
    "memory limit": "another memory limit",
}


def not_alike(facts: Iterable[str], platform: str) -> str:
    """Why a platform is not compared, and the way round it."""
    what = ", ".join(UNFAIR[fact] for fact in facts)
    return f"refused: not alike, it has {what}; asked for by its name (-p {platform}) it is compared all the same"


def fact_text(value: Any) -> str:
    """A fact of the manifest."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "unknown" if value is None else str(value)
