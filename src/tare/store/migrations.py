"""Tables that each format version of a campaign file adds to those of the previous version, in order.

The first write to a file brings it up to the newest version.
"""

from __future__ import annotations

import sqlite3

from tare.store import schema

#: The first step makes an empty file one of version 1. A change of the tables adds a step at the end.
MIGRATIONS = (schema.TABLES,)
FORMAT_VERSION = len(MIGRATIONS)
#: The versions that this tare reads.
READABLE = range(1, FORMAT_VERSION + 1)


def version(db: sqlite3.Connection) -> int:
    """Return the version of a file's tables (SQLite's ``user_version``)."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def bring_up(db: sqlite3.Connection) -> None:
    """Add the tables that an empty or older file lacks, in the transaction of the first write.

    A file that tare opens and then refuses stays readable for the tare that wrote it.
    """
    before = version(db)
    if before == FORMAT_VERSION:
        return
    for tables in MIGRATIONS[before:]:
        for statement in tables.split(";"):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def empty(form: int) -> sqlite3.Connection:
    """Return a nameless file with the tables of a version. SQLite keeps it in memory while it is small."""
    db = sqlite3.connect("", isolation_level=None)
    for tables in MIGRATIONS[:form]:
        db.executescript(tables)
    return db
