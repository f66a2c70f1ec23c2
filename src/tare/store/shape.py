"""Check that a file's tables are exactly ours, because a schema is a program and may be a stranger's.

A view in place of a table, a trigger, a virtual table, a generated column or an index over an expression would run
whenever the table is read. So the text of all of them is compared before any other query of the file.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3

from tare.store.migrations import FORMAT_VERSION, empty

#: Limit of schema rows to read; ours has about thirty.
_MAX_OBJECTS = 100
_QUERY = f"SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT {_MAX_OBJECTS}"  # noqa: S608 (a number)

#: Type, name, table, and SQL without its layout; "" if SQLite made it by itself.
_Part = tuple[str, str, str, str]


def foreign(db: sqlite3.Connection, form: int) -> str | None:
    """Return the first difference between a file of this version and ours, in words, or None."""
    expected, actual = _ours(form), _parts(db)
    for kind, name, _, _ in sorted(actual - expected):
        if any(part[:2] == (kind, name) for part in expected):
            return f"its {kind} {name!r} is not as tare makes it"
        return f"it has {'an' if kind == 'index' else 'a'} {kind} {name!r}, which tare does not make"
    for kind, name, _, _ in sorted(expected - actual):
        return f"it has no {kind} {name!r}"
    return None


def has_facts(db: sqlite3.Connection) -> bool:
    """Return True if the table of facts is ours, whatever else the file contains."""
    return {part for part in _ours(FORMAT_VERSION) if part[2] == "fact"} <= _parts(db)


def _parts(db: sqlite3.Connection) -> frozenset[_Part]:
    # A stranger's file may hold values other than text.
    return frozenset(
        (str(kind), str(name), str(table), " ".join(str(sql or "").split()))
        for kind, name, table, sql in db.execute(_QUERY)
    )


@functools.cache
def _ours(form: int) -> frozenset[_Part]:
    with contextlib.closing(empty(form)) as db:
        return _parts(db)
