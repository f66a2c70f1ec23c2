"""Footprints in a campaign file: one row each, with its packed hits, and every name stored once."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from pydantic import ValidationError

from tare.errors import first_invalid
from tare.footprint_model import Footprint
from tare.records import one_line
from tare.store.limits import HITS_CAP, MAX
from tare.store.packed import pack_hits, unpack_hits
from tare.store.row_rules import BrokenError, UnknownError, frame

_FOOTPRINTS = """
SELECT id AS footprint, level, scope, platform, phase, workload AS workload_name, repeat, seconds, lost, known
FROM footprint ORDER BY id
"""
_NAMES = "SELECT id AS thing, name FROM thing ORDER BY id"
_INSERT = "INSERT INTO footprint VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def add(db: sqlite3.Connection, footprints: Iterable[tuple[float, Footprint]], ids: dict[str, int]) -> None:
    """Append footprints, inside of a transaction, each with its time of storage in UNIX seconds.

    ``ids``: the ids of all names in the file, read if empty and then kept up to date. There are tens of thousands, so
    the caller keeps them for the next footprint, until a transaction fails. Raises `UnknownError` for a footprint that
    no kernel can have.
    """
    if not ids:
        ids |= {name: thing_id for thing_id, name in frame(db, _NAMES).iter_rows()}
    there = db.execute("SELECT count(*) FROM footprint").fetchone()[0]
    last = db.execute("SELECT coalesce(max(id), 0) FROM thing").fetchone()[0]
    for number, (at, footprint) in enumerate(footprints, there + 1):
        _require_possible(footprint, number)
        new = [(thing_id, name) for thing_id, name in enumerate((n for n in footprint.hits if n not in ids), last + 1)]
        db.executemany("INSERT INTO thing VALUES (?, ?)", new)
        ids |= {name: thing_id for thing_id, name in new}
        last += len(new)
        db.execute(_INSERT, (at, *_facts(footprint), _packed(footprint, ids, number)))


def _facts(footprint: Footprint) -> tuple[object, ...]:
    kind = (footprint.level.value, footprint.scope.value, footprint.platform, footprint.phase.value, footprint.workload)
    return (*kind, footprint.repeat, footprint.seconds, footprint.lost, footprint.known)


def _packed(footprint: Footprint, ids: Mapping[str, int], number: int) -> bytes:
    count = len(footprint.hits)
    thing_ids = np.fromiter(map(ids.__getitem__, footprint.hits), np.int64, count)
    packed = pack_hits(thing_ids, np.fromiter(footprint.hits.values(), np.int64, count))
    if len(packed) > HITS_CAP:
        raise UnknownError(f"footprint {number} is not valid: it has more than {HITS_CAP >> 20} MiB of hits")
    return packed


def read(db: sqlite3.Connection) -> Iterator[Footprint]:
    """Yield all footprints in order. A name is the same object in all of them.

    Raises `BrokenError`, and `UnknownError` for an invalid footprint.
    """
    names = {thing: one_line(name) for thing, name in frame(db, _NAMES).iter_rows()}
    for number, facts in enumerate(frame(db, _FOOTPRINTS).iter_rows(named=True), 1):
        row, workload = facts.pop("footprint"), facts.pop("workload_name")
        [packed] = db.execute("SELECT hits FROM footprint WHERE id = ?", (row,)).fetchone()
        try:
            hits = _named(packed, names)
            footprint = Footprint(**facts, workload=workload, hits={}).model_copy(update={"hits": hits})
        except KeyError:
            raise UnknownError(f"footprint {number} is not valid: it has a thing without a name") from None
        except ValidationError as error:
            raise UnknownError(f"footprint {number} is not valid: {first_invalid(error)}") from None
        _require_possible(footprint, number)
        yield footprint


def _named(packed: object, names: Mapping[int, str]) -> dict[str, int]:
    """Return hits by name, in order. Raises `KeyError` for an id without a name, and `BrokenError`."""
    ids, counts = (numbers.tolist() for numbers in unpack_hits(packed))
    hits = dict(zip(map(names.__getitem__, ids), counts, strict=True))
    if len(hits) < len(ids):  # A shared file may contain a stand-in twice, but never more ids than names.
        if len(set(ids)) < len(ids):
            raise BrokenError("a footprint has the same thing twice")
        hits = dict.fromkeys(hits, 0)
        for thing_id, count in zip(ids, counts, strict=True):
            hits[names[thing_id]] += count
    return hits


def _require_possible(footprint: Footprint, number: int) -> None:
    counts = (sum(footprint.hits.values()), footprint.repeat, footprint.lost, footprint.known or 0)
    fewest = min(footprint.hits.values(), default=1)
    if not math.isfinite(footprint.seconds) or max(counts) > MAX or fewest < 1:
        raise UnknownError(f"footprint {number} is not valid: no kernel can have run so long, or so much")
