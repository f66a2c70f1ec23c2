"""When a campaign was at work: from a start, or a resume, to its end or to the last write before it was killed."""

from __future__ import annotations

import sqlite3
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tare.store.limits import MAX_EVENTS
from tare.store.rows import frame

#: The event that a resumed campaign begins with.
RESUMED = "resumed"
#: No start or clean-up between two trials takes so long: a longer time is a pause. In seconds.
MAX_HANDOVER_S = 900.0
#: By how much the clock of the day and that of the work may part between two writes, in seconds. Where they part by
#: more, the machine slept, or somebody set its clock.
_MAX_SLIP_S = 2.0


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of work, in UNIX seconds. ``boot``: the kernel's id of that boot; None: it is not known."""

    began: float
    ended: float
    boot: str | None = None

    @property
    def seconds(self) -> float:
        """How long it was, in seconds."""
        return self.ended - self.began


def estimated(trials: Iterable[tuple[float, float]], resumed: Sequence[float]) -> list[Segment]:
    """The segments of a campaign that recorded none, from each trial's begin and end and from when it was resumed.

    UNIX seconds. Between two trials there was a pause where the campaign was resumed in between, and where nothing that
    lies between two trials takes so long.
    """
    segments: list[Segment] = []
    starts = sorted(resumed)
    for began, ended in sorted(trials):
        last = segments[-1] if segments else None
        # Resumed at the end of the last or after it, and not after this begin.
        between = last is not None and bisect_left(starts, last.ended) < bisect_right(starts, began)
        if last is None or began - last.ended > MAX_HANDOVER_S or between:
            segments.append(Segment(began, ended))
        else:
            segments[-1] = replace(last, ended=max(last.ended, ended))
    return segments


def estimate(db: sqlite3.Connection) -> list[Segment]:
    """`estimated` from the rows of a campaign's file."""
    trials = frame(db, "SELECT started, wall_ns FROM trial")
    resumed = frame(db, "SELECT at FROM event WHERE text = ?", (RESUMED,), MAX_EVENTS)["at"].to_list()
    return estimated(((began, began + wall_ns / 1e9) for began, wall_ns in trials.iter_rows()), resumed)


def add(db: sqlite3.Connection, segment: Segment) -> int:
    """Append it; inside of a transaction. Returns its row."""
    row = db.execute(
        "INSERT INTO segment (began, ended, boot) VALUES (?, ?, ?)", (segment.began, segment.ended, segment.boot)
    ).lastrowid
    assert row is not None, "a row was inserted"
    return row


def recorded(db: sqlite3.Connection) -> list[Segment]:
    """Return the segments that a file has."""
    rows = frame(db, "SELECT began, ended, boot FROM segment ORDER BY id", most=MAX_EVENTS)
    return [Segment(*row) for row in rows.iter_rows()]


class Meter:
    """Writes the segment that is under way. Every call is made inside of a transaction."""

    def __init__(self, db: sqlite3.Connection, boot: str | None) -> None:
        self._db = db
        self._boot = boot
        self._at, self._worked = time.time(), time.monotonic()
        self._row = add(db, Segment(self._at, self._at, boot))

    def advance(self) -> None:
        """Count the time until now. What a machine slept is no work: a new segment begins after it."""
        at, worked = time.time(), time.monotonic()
        since = worked - self._worked
        if abs(at - self._at - since) > _MAX_SLIP_S:
            self._row = add(self._db, Segment(at - since, at, self._boot))
        else:
            self._db.execute("UPDATE segment SET ended = ? WHERE id = ?", (at, self._row))
        self._at, self._worked = at, worked
