"""Attachments of a campaign file; up to version 3 each footprint and each surface was one, as JSON."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from tare.errors import first_invalid
from tare.footprint_model import Footprint, Surface
from tare.store import footprints, surfaces
from tare.store.limits import ATTACHED_CAP, ATTACHMENT_CAP
from tare.store.packed import HEADER_BYTES, stated_length, unpack
from tare.store.reading import Model, known_part
from tare.store.rows import BrokenError, UnknownError


@dataclass(frozen=True, slots=True)
class Attachment:
    """One attachment: its row, when it was made (UNIX seconds), its name and its contents."""

    id: int
    at: float
    name: str
    content: bytes


def fill(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Put the attachments that are footprints and surfaces into tables. Raises `UnknownError` for one that is none.

    In the same file they are no attachments after it; but for one with fields that this tare does not know, which no
    table has a place for.
    """
    footprints.add(target, _taken(source, "footprint", Footprint, out=source is target), {})
    surfaces.add(target, (surface for _, surface in _taken(source, "surface", Surface, out=source is target)))


def _taken(db: sqlite3.Connection, name: str, model: type[Model], *, out: bool) -> Iterator[tuple[float, Model]]:
    """What the attachments of this name hold, and since when. ``out``: they are removed."""
    for number, attachment in enumerate(unpacked(db, name), 1):
        try:
            read, unknown = known_part(model, attachment.content)
        except ValidationError as error:
            raise UnknownError(f"{name} {number} is not valid: {first_invalid(error)}") from None
        yield attachment.at, read
        if out and not unknown:
            db.execute("DELETE FROM attachment WHERE id = ?", (attachment.id,))


def unpacked(db: sqlite3.Connection, name: str | None = None) -> Iterator[Attachment]:
    """Attachments in order, those of one name or all, one after the other.

    Raises `BrokenError` for more than any tare keeps: at once where they say so themselves, as what tare packed does.
    """
    rows = db.execute(
        "SELECT id, at, name, substr(zstd, 1, ?1) FROM attachment WHERE ?2 IS NULL OR name = ?2 ORDER BY id",
        (HEADER_BYTES, name),
    ).fetchall()
    _refuse_excess(sum(stated_length(header) for *_, header in rows))
    total = 0
    for row, at, kept_name, _ in rows:
        content = unpack(db.execute("SELECT zstd FROM attachment WHERE id = ?", (row,)).fetchone()[0], ATTACHMENT_CAP)
        total += len(content)
        _refuse_excess(total)
        yield Attachment(row, at, str(kept_name), content)


def _refuse_excess(length: int) -> None:
    if length > ATTACHED_CAP:
        raise BrokenError(f"its attachments hold more than {ATTACHED_CAP >> 20} MiB")
