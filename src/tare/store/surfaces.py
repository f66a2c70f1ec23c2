"""Surfaces in a campaign file: the kernel calls and rights of a platform's processes, in rows."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from tare.errors import first_invalid
from tare.footprint_model import Surface, Tasks
from tare.store.row_rules import UnknownError, frame

#: Parts of a surface, or of one of its tasks, each with a table of its own.
_PARTS = {
    "call": ("name", "outcome"),
    "answer": ("name", "answer"),
    "abi": ("name", "reachable", "total", "in_kernel"),
    "thread": ("name", "threads"),
    "place": ("path", "host", "kind"),
    "detail": ("kind", "detail"),
}
#: Lists of texts, by the ``kind`` of their details.
_LISTS = ("effective", "bounding", "namespaces", "devices", "held")
_SURFACES = "SELECT id AS surface, platform, at, kernel, total, readable FROM surface ORDER BY id"
_FACTS = ("pid", "program", "role", "counted", "seccomp", "filters", "unread", "no_new_privs", "label", "uid", "gid")
_TASKS = f"SELECT id AS task, surface, readable, {', '.join(_FACTS)} FROM surface_task ORDER BY id"  # noqa: S608
_INSERT_TASK = (
    f"INSERT INTO surface_task (surface, readable, {', '.join(_FACTS)})"  # noqa: S608
    f" VALUES (?, ?, {', '.join('?' * len(_FACTS))})"
)

#: A surface, and one of its tasks; None: the whole surface.
_Owner = tuple[int, int | None]


def add(db: sqlite3.Connection, surfaces: Iterable[Surface]) -> None:
    """Append surfaces, inside of a transaction. Raises `UnknownError` for a surface that no table can hold."""
    for number, surface in enumerate(surfaces, db.execute("SELECT count(*) FROM surface").fetchone()[0] + 1):
        try:
            _add(db, surface)
        except OverflowError:
            raise UnknownError(f"surface {number} is not valid: no kernel counts so far") from None


def _add(db: sqlite3.Connection, surface: Surface) -> None:
    facts = (surface.platform, surface.at, surface.kernel, surface.of, surface.calls is not None)
    surface_id = db.execute("INSERT INTO surface VALUES (NULL, ?, ?, ?, ?, ?)", facts).lastrowid
    _add_parts(
        db,
        (surface_id, None),
        call=(surface.calls or {}).items(),
        abi=((name, abi.reachable, abi.of, abi.in_kernel) for name, abi in surface.abis.items()),
        detail=(("unread", reason) for reason in surface.unread),
    )
    for tasks in surface.tasks:
        values = [getattr(tasks, name) for name in _FACTS]
        task = db.execute(_INSERT_TASK, (surface_id, tasks.calls is not None, *values)).lastrowid
        _add_parts(
            db,
            (surface_id, task),
            call=(tasks.calls or {}).items(),
            answer=((name, answer) for name, answers in tasks.outcomes.items() for answer in answers or (None,)),
            abi=((name, abi.reachable, abi.of, abi.in_kernel) for name, abi in tasks.abis.items()),
            thread=tasks.threads.items(),
            place=((place.path, place.host, place.kind) for place in tasks.writable),
            detail=((kind, text) for kind in _LISTS for text in getattr(tasks, kind)),
        )


def _add_parts(
    db: sqlite3.Connection, owner: tuple[int | None, int | None], **rows: Iterable[Sequence[object]]
) -> None:
    for part, values in rows.items():
        columns = _PARTS[part]
        insert = f"INSERT INTO surface_{part} (surface, task, {', '.join(columns)})"
        places = ", ".join("?" * (2 + len(columns)))
        db.executemany(f"{insert} VALUES ({places})", ((*owner, *row) for row in values))


def read(db: sqlite3.Connection) -> Iterator[Surface]:
    """Yield all surfaces in order. Raises `BrokenError`, and `UnknownError` for an invalid surface."""
    parts = {part: _by_owner(db, part) for part in _PARTS}
    tasks: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for facts in frame(db, _TASKS).iter_rows(named=True):
        tasks[facts["surface"]].append(facts)
    for number, facts in enumerate(frame(db, _SURFACES).iter_rows(named=True), 1):
        surface = facts["surface"]
        surface_rows = {part: rows.get((surface, None), []) for part, rows in parts.items()}
        try:
            yield Surface(
                platform=facts["platform"],
                at=facts["at"],
                kernel=facts["kernel"],
                of=facts["total"],
                calls=dict(surface_rows["call"]) if facts["readable"] else None,
                unread=tuple(reason for _, reason in surface_rows["detail"]),
                tasks=tuple(_tasks(task, parts) for task in tasks[surface]),
                abis=_abis(surface_rows["abi"]),
            )
        except ValidationError as error:
            raise UnknownError(f"surface {number} is not valid: {first_invalid(error)}") from None


def _tasks(facts: Mapping[str, Any], parts: Mapping[str, Mapping[_Owner, list[Any]]]) -> Tasks:
    owner = (facts["surface"], facts["task"])
    task_rows = {part: rows.get(owner, []) for part, rows in parts.items()}
    answers: dict[str, list[str]] = defaultdict(list)
    for name, answer in task_rows["answer"]:
        answers[name] += [] if answer is None else [answer]
    fields = {
        **{name: facts[name] for name in _FACTS},
        **{kind: tuple(text for detail_kind, text in task_rows["detail"] if detail_kind == kind) for kind in _LISTS},
        "calls": dict(task_rows["call"]) if facts["readable"] else None,
        "outcomes": answers,
        "abis": _abis(task_rows["abi"]),
        "threads": dict(task_rows["thread"]),
        "writable": [dict(zip(_PARTS["place"], place, strict=True)) for place in task_rows["place"]],
    }
    return Tasks.model_validate(fields)


def _abis(rows: Iterable[tuple[str, int, int, bool | None]]) -> Any:
    return {name: {"reachable": reachable, "of": of, "in_kernel": there} for name, reachable, of, there in rows}


def _by_owner(db: sqlite3.Connection, part: str) -> dict[_Owner, list[Any]]:
    rows = frame(db, f"SELECT surface, task, {', '.join(_PARTS[part])} FROM surface_{part} ORDER BY id")  # noqa: S608
    by_owner: dict[_Owner, list[Any]] = defaultdict(list)
    for surface, task, *values in rows.iter_rows():
        by_owner[surface, task].append(tuple(values))
    return by_owner
