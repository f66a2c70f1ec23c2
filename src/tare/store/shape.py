"""Whether a file's tables are ours, to the letter: its schema is a program, and may be somebody else's.

A view in place of a table, a trigger, a virtual table, a generated column or an index over an expression would run with
whatever reads the table. So the text of all of them is compared, before anything else is asked of the file.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3

from tare.store.migrations import FORMAT_VERSION, empty

#: Rows of a schema that are looked at: ours has some thirty.
_MAX_OBJECTS = 100
_QUERY = f"SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT {_MAX_OBJECTS}"  # noqa: S608 (a number)

#: type, name, table, and SQL without its layout; "" where SQLite made it by itself.
_Part = tuple[str, str, str, str]


def foreign(db: sqlite3.Connection, form: int) -> str | None:
    """The first thing in which a file of this version differs from ours, in words; None: in nothing."""
    expected, actual = _ours(form), _parts(db)
    for kind, name, _, _ in sorted(actual - expected):
        if any(part[:2] == (kind, name) for part in expected):
            return f"its {kind} {name!r} is not as tare makes it"
        return f"it has {'an' if kind == 'index' else 'a'} {kind} {name!r}, which tare does not make"
    for kind, name, _, _ in sorted(expected - actual):
        return f"it has no {kind} {name!r}"
    return None


def has_facts(db: sqlite3.Connection) -> bool:
    """Whether its table of facts is ours, whatever else there is."""
    return {part for part in _ours(FORMAT_VERSION) if part[2] == "fact"} <= _parts(db)


def _parts(db: sqlite3.Connection) -> frozenset[_Part]:
    # Whoever wrote it need not have written text.
    return frozenset(
        (str(kind), str(name), str(table), " ".join(str(sql or "").split()))
        for kind, name, table, sql in db.execute(_QUERY)
    )


@functools.cache
def _ours(form: int) -> frozenset[_Part]:
    with contextlib.closing(empty(form)) as db:
        return _parts(db)
