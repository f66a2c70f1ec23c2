"""From each format version of a campaign file to the next, in order: the one place that knows what an old file lacks.

A file that is written to is brought up to the newest version by its first write. One that is only read stays as it is:
what it lacks is made of what it has in a file beside it, which goes when it was read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from tare.store import attachments, schema, segments


class Migration(NamedTuple):
    """What a version has that the one before had not.

    ``fill`` puts into the new tables of its second file what the first tells in tables of version 1; a file that is
    brought up is both.
    """

    tables: str
    fill: Callable[[sqlite3.Connection, sqlite3.Connection], None] = lambda _source, _target: None


#: The first makes an empty file one of version 1. A change of the tables is one more at the end.
MIGRATIONS = (
    Migration(schema.CAMPAIGN),
    Migration(schema.TELEMETRY),
    Migration(schema.SEGMENTS, segments.fill),
    Migration(schema.FOOTPRINTS + schema.SURFACES, attachments.fill),
    Migration(schema.CLOCKS),
)
FORMAT_VERSION = len(MIGRATIONS)
#: What this tare reads.
READABLE = range(1, FORMAT_VERSION + 1)
#: The versions from which on a file has these tables.
TELEMETRY_SINCE, SEGMENTS_SINCE, FOOTPRINTS_SINCE, CLOCKS_SINCE = 2, 3, 4, 5


def version(db: sqlite3.Connection) -> int:
    """The version of a file's tables (SQLite's ``user_version``)."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def bring_up(db: sqlite3.Connection) -> None:
    """Give a file of an older version, or an empty one, what it lacks; inside of the transaction of the first write.

    Not before: a file that is opened and then refused still is one for the tare that wrote it.
    """
    before = version(db)
    if before == FORMAT_VERSION:
        return
    for migration in MIGRATIONS[before:]:
        for statement in migration.tables.split(";"):
            db.execute(statement)
        migration.fill(db, db)
    db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


@contextmanager
def having(db: sqlite3.Connection, since: int) -> Iterator[sqlite3.Connection]:
    """The file, where it has the tables of this version; else one beside it with what it tells for these."""
    if version(db) >= since:
        yield db
        return
    with closing(empty(FORMAT_VERSION)) as beside:
        MIGRATIONS[since - 1].fill(db, beside)
        yield beside


def empty(form: int) -> sqlite3.Connection:
    """The tables of a version in a nameless file, which SQLite keeps in memory as long as it is small."""
    db = sqlite3.connect("", isolation_level=None)
    for migration in MIGRATIONS[:form]:
        db.executescript(migration.tables)
    db.execute("BEGIN")  # what is put into it is never written out for good
    return db
