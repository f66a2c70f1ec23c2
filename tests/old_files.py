"""Campaign files as an older tare may have left them, with what no tare leaves too."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import zstandard

from tare.store.migrations import MIGRATIONS


def as_version(version: int, file: Path, *attached: tuple[str, bytes]) -> Path:
    """The same campaign in the form of this version, with these attachments; what is in newer tables goes."""
    newer = "".join(migration.tables for migration in MIGRATIONS[version:])
    tables = [line.split()[2] for line in newer.splitlines() if "CREATE TABLE" in line]
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as db:
        for table in reversed(tables):
            db.execute(f"DROP TABLE {table}")
        for name, data in attached:
            packed = zstandard.ZstdCompressor().compress(data)
            db.execute("INSERT INTO attachment (at, name, zstd) VALUES (1.0, ?, ?)", (name, packed))
        db.execute(f"PRAGMA user_version = {version}")
    return file
