"""Numbering of repeats when footprints are added to those of a campaign file."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tare.footprint_model import Footprint
from tare.model import Level


def numbered_after(existing: Iterable[Footprint]) -> Callable[[Footprint], Footprint]:
    """Return a function that numbers the repeats of new footprints after those already in the file, by level."""
    last: dict[Level, int] = {}
    for footprint in existing:
        last[footprint.level] = max(last.get(footprint.level, -1), footprint.repeat)
    return lambda new: new.model_copy(update={"repeat": new.repeat + last.get(new.level, -1) + 1})
