"""Footprints in a campaign file: a row each, every name once, and a row for each thing that ran in one."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from tare.footprint.model import Footprint
from tare.store.limits import MAX
from tare.store.reading import why_not
from tare.store.rows import UnknownError, frame

_FOOTPRINTS = """
SELECT id AS footprint, level, scope, platform, phase, workload AS workload_name, repeat, seconds, lost, known
FROM footprint ORDER BY id
"""
_INSERT = "INSERT INTO footprint VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def add(db: sqlite3.Connection, footprints: Iterable[tuple[float, Footprint]]) -> None:
    """Append them, inside of a transaction; each with when it was kept, in UNIX seconds.

    Raises `UnknownError` for one that no kernel can have.
    """
    things: dict[str, int] = {name: row for row, name in db.execute("SELECT id, name FROM thing ORDER BY id")}
    there = db.execute("SELECT count(*) FROM footprint").fetchone()[0]
    for number, (at, one) in enumerate(footprints, there + 1):
        _require_possible(one, number)
        facts = (one.level.value, one.scope.value, one.platform, one.phase.value, one.workload, one.repeat, one.seconds)
        row = db.execute(_INSERT, (at, *facts, one.lost, one.known)).lastrowid
        new = [name for name in one.hits if name not in things]
        things |= {name: thing for thing, name in enumerate(new, max(things.values(), default=0) + 1)}
        db.executemany("INSERT INTO thing VALUES (?, ?)", ((things[name], name) for name in new))
        hits = ((row, position, things[name], hits) for position, (name, hits) in enumerate(one.hits.items()))
        db.executemany("INSERT INTO hit VALUES (?, ?, ?, ?)", hits)


def clear(db: sqlite3.Connection) -> None:
    """Take all out, inside of a transaction."""
    for table in ("hit", "thing", "footprint"):
        db.execute(f"DELETE FROM {table}")  # noqa: S608 (a name of ours)


def read(db: sqlite3.Connection) -> Iterator[Footprint]:
    """All in order, a name as one object throughout. Raises `BrokenError`, and `UnknownError` for one that is none."""
    names = dict(frame(db, "SELECT id AS thing, name FROM thing").iter_rows())
    for number, facts in enumerate(frame(db, _FOOTPRINTS).iter_rows(named=True), 1):
        row, workload = facts.pop("footprint"), facts.pop("workload_name")
        found = frame(db, "SELECT thing, hits FROM hit WHERE footprint = ? ORDER BY position", (row,))
        hits: dict[str, int] = {}
        try:
            for thing, count in found.iter_rows():
                hits[names[thing]] = hits.get(names[thing], 0) + count  # a shared file may have a stand-in twice
            one = Footprint(**facts, workload=workload, hits={}).model_copy(update={"hits": hits})
        except KeyError:
            raise UnknownError(f"footprint {number} does not hold: it has a thing without a name") from None
        except ValidationError as error:
            raise UnknownError(f"footprint {number} does not hold: {why_not(error)}") from None
        _require_possible(one, number)
        yield one


def _require_possible(one: Footprint, number: int) -> None:
    counts = (sum(one.hits.values()), one.repeat, one.lost, one.known or 0)
    if not math.isfinite(one.seconds) or max(counts) > MAX:
        raise UnknownError(f"footprint {number} does not hold: no kernel can have run so long, or so much")
