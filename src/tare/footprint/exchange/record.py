"""Numbers the repeats of footprints that are added to those of a campaign's file."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tare.footprint_model import Footprint
from tare.model import Level


def numbered_after(existing: Iterable[Footprint]) -> Callable[[Footprint], Footprint]:
    """Number the repeats of new footprints of a level on from those that are in the file already."""
    last: dict[Level, int] = {}
    for footprint in existing:
        last[footprint.level] = max(last.get(footprint.level, -1), footprint.repeat)
    return lambda new: new.model_copy(update={"repeat": new.repeat + last.get(new.level, -1) + 1})
