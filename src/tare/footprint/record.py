"""Footprints and surfaces in a campaign's file, an attachment each, as JSON. What else is in a file is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from pydantic import ValidationError

from tare.errors import StoreError
from tare.footprint.model import ATTACHMENT, SURFACE_ATTACHMENT, Footprint, Level, Surface
from tare.store.reading import known_part, why_not
from tare.store.store import Store

#: A kernel's counters have 64 bits, and so have those that read this.
MOST_HITS = 2**63 - 1


def keep(store: Store, footprint: Footprint) -> None:
    """Write it into the file; on disk when this returns. Raises `StoreError`."""
    store.add_attachment(ATTACHMENT, footprint.model_dump_json().encode())


def keep_surface(store: Store, surface: Surface) -> None:
    """Write it into the file; on disk when this returns. Those of the platform that are there stay beside it."""
    store.add_attachment(SURFACE_ATTACHMENT, surface.model_dump_json().encode())


def footprints(store: Store) -> list[Footprint]:
    """All that the file holds, as they were counted. Raises `StoreError` for one that is none."""
    return [_read(store, number, data) for number, data in enumerate(store.attached(ATTACHMENT), 1)]


def numbered_after(there: Iterable[Footprint]) -> Callable[[Footprint], Footprint]:
    """Number the repeats of new footprints of a level on from those that are in the file already."""
    last: dict[Level, int] = {}
    for footprint in there:
        last[footprint.level] = max(last.get(footprint.level, -1), footprint.repeat)
    return lambda new: new.model_copy(update={"repeat": new.repeat + last.get(new.level, -1) + 1})


def _read(store: Store, number: int, data: bytes) -> Footprint:
    try:
        read, _ = known_part(Footprint, data)
    except ValidationError as error:
        raise _broken(store, number, why_not(error)) from None
    if not math.isfinite(read.seconds) or sum(read.hits.values()) > MOST_HITS:
        raise _broken(store, number, "no kernel can have run so long, or so much")
    return read


def _broken(store: Store, number: int, why: str) -> StoreError:
    return StoreError(
        f"{store.path}: footprint {number} does not hold: {why}",
        fix="read it with the version of tare that wrote it, or take a copy that is whole",
    )
