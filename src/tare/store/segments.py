"""Working periods of a campaign: from a start, or a resume, to its end or to the last write before a kill."""

from __future__ import annotations

import sqlite3
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tare.store.limits import MAX_EVENTS
from tare.store.row_rules import frame

#: The event at the start of a resumed campaign.
RESUMED = "resumed"
#: In seconds. A longer time between two trials is a pause, because no start or clean-up takes so long.
MAX_HANDOVER_S = 900.0
#: Allowed drift between the wall clock and the monotonic clock from write to write, in seconds. Above it, the machine
#: slept, or somebody set its clock.
_MAX_SLIP_S = 2.0


@dataclass(frozen=True, slots=True)
class Segment:
    """A working period, in UNIX seconds. ``boot``: the kernel's id of that boot; None: unknown."""

    began: float
    ended: float
    boot: str | None = None

    @property
    def seconds(self) -> float:
        """Its duration, in seconds."""
        return self.ended - self.began


def estimated(trials: Iterable[tuple[float, float]], resumed: Sequence[float]) -> list[Segment]:
    """Estimate the segments of a campaign without records, from the trials' starts and ends and the resumes.

    All times are UNIX seconds. There was a pause between two trials if the campaign was resumed in between, or if the
    gap is longer than any work between two trials.
    """
    segments: list[Segment] = []
    starts = sorted(resumed)
    for began, ended in sorted(trials):
        last = segments[-1] if segments else None
        # The resume falls between the end of the previous segment and this start.
        between = last is not None and bisect_left(starts, last.ended) < bisect_right(starts, began)
        if last is None or began - last.ended > MAX_HANDOVER_S or between:
            segments.append(Segment(began, ended))
        else:
            segments[-1] = replace(last, ended=max(last.ended, ended))
    return segments


def estimate(db: sqlite3.Connection) -> list[Segment]:
    """Return `estimated` for the rows of a campaign's file."""
    trials = frame(db, "SELECT started, wall_ns FROM trial")
    resumed = frame(db, "SELECT at FROM event WHERE text = ?", (RESUMED,), MAX_EVENTS)["at"].to_list()
    return estimated(((began, began + wall_ns / 1e9) for began, wall_ns in trials.iter_rows()), resumed)


def add(db: sqlite3.Connection, segment: Segment) -> int:
    """Append a segment, inside of a transaction. Return its row."""
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
    """Writer of the current segment. Every call is made inside of a transaction."""

    def __init__(self, db: sqlite3.Connection, boot: str | None) -> None:
        self._db = db
        self._boot = boot
        self._at, self._worked = time.time(), time.monotonic()
        self._row = add(db, Segment(self._at, self._at, boot))

    def advance(self) -> None:
        """Count the time until now. Sleep of the machine is not work, so a new segment starts after it."""
        at, worked = time.time(), time.monotonic()
        since = worked - self._worked
        if abs(at - self._at - since) > _MAX_SLIP_S:
            self._row = add(self._db, Segment(at - since, at, self._boot))
        else:
            self._db.execute("UPDATE segment SET ended = ? WHERE id = ?", (at, self._row))
        self._at, self._worked = at, worked
