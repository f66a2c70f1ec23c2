"""Attachments of a campaign file; up to version 3 each footprint and each surface was one, as JSON."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from tare.errors import first_invalid
from tare.footprint_model import Footprint, Surface
from tare.store import footprints, surfaces
from tare.store.limits import ATTACHED_CAP, ATTACHMENT_CAP
from tare.store.packed import unpack
from tare.store.reading import Model, known_part
from tare.store.rows import BrokenError, UnknownError


def fill(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Put the attachments that are footprints and surfaces into tables. Raises `UnknownError` for one that is none.

    In the same file they are no attachments after it; but for one with fields that this tare does not know, which no
    table has a place for.
    """
    footprints.add(target, _taken(source, "footprint", Footprint, out=source is target), {})
    surfaces.add(target, (surface for _, surface in _taken(source, "surface", Surface, out=source is target)))


def _taken(db: sqlite3.Connection, name: str, model: type[Model], *, out: bool) -> Iterator[tuple[float, Model]]:
    """What the attachments of this name hold, and since when. ``out``: they are removed."""
    rows = db.execute("SELECT id, at FROM attachment WHERE name = ? ORDER BY id", (name,)).fetchall()
    packed = (db.execute("SELECT zstd FROM attachment WHERE id = ?", (row,)).fetchone()[0] for row, _ in rows)
    for number, ((row, at), data) in enumerate(zip(rows, unpacked(packed), strict=True), 1):
        try:
            read, unknown = known_part(model, data)
        except ValidationError as error:
            raise UnknownError(f"{name} {number} is not valid: {first_invalid(error)}") from None
        yield at, read
        if out and not unknown:
            db.execute("DELETE FROM attachment WHERE id = ?", (row,))


def unpacked(packed: Iterable[object]) -> Iterator[bytes]:
    """The contents of attachments, one after the other. Raises `BrokenError` for more than any tare keeps."""
    remaining = ATTACHED_CAP
    for data in packed:
        content = unpack(data, ATTACHMENT_CAP)
        remaining -= len(content)
        if remaining < 0:
            raise BrokenError(f"its attachments hold more than {ATTACHED_CAP >> 20} MiB")
        yield content
