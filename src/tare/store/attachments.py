"""Attachments of a campaign file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from tare.store.limits import ATTACHED_CAP, ATTACHMENT_CAP
from tare.store.packed import HEADER_BYTES, stated_length, unpack
from tare.store.row_rules import BrokenError


@dataclass(frozen=True, slots=True)
class Attachment:
    """One attachment: its row, its time of creation (UNIX seconds), its name and its contents."""

    id: int
    at: float
    name: str
    content: bytes


def unpacked(db: sqlite3.Connection) -> Iterator[Attachment]:
    """Yield attachments in order.

    Raises `BrokenError` above tare's limits: at once if the packed data state their length, as tare's own do.
    """
    headers = "SELECT id, at, name, substr(zstd, 1, ?) FROM attachment ORDER BY id"
    rows = db.execute(headers, (HEADER_BYTES,)).fetchall()
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
