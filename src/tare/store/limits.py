"""Limits for every part of a campaign file, because a file may come from a stranger.

Each limit is far above what a campaign produces. A file beyond a limit is refused with one line.
"""

from __future__ import annotations

import sqlite3
import time

from tare.timeouts import stretched

#: Bytes stored of each raw output; its full length is stored beside it.
OUTPUT_CAP = 1 << 20
#: Bytes of one attachment, unpacked, and of all of a name that are unpacked in one go.
ATTACHMENT_CAP, ATTACHED_CAP = 1 << 26, 1 << 30
#: Longest text or blob, in bytes: an attachment that cannot be compressed.
MAX_VALUE_BYTES = ATTACHMENT_CAP + (1 << 20)
#: Bytes of the packed hits of one footprint: about two million things.
HITS_CAP = 1 << 23
#: Characters of the record. pydantic's own limit for JSON within JSON is about 200 levels.
MAX_RECORD_CHARS = 1 << 24
#: Rows of each table: samples, ticks of the telemetry, and smaller tables.
MAX_SAMPLES, MAX_TICKS, MAX_ROWS = 200_000_000, 20_000_000, 5_000_000
#: Events, and their total characters.
MAX_EVENTS, MAX_EVENT_TEXT = 100_000, 1 << 26
#: Arms times metrics: the cells of a report.
MAX_CELLS = 100_000
#: The largest integer of SQLite, and of every counter.
MAX = 2**63 - 1
#: Latest valid time (the year 5138), in UNIX seconds. A clock that was never set is in 1970.
LAST_MOMENT = 1e11

#: Limits on a file's own schema. It is compared with ours before any part of it is used.
_SQLITE_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 50,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 3,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 8,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
#: Processor time of a statement: a hundred times that of the slowest statement for the file's size.
STATEMENT_LIMIT_S, STATEMENT_LIMIT_S_A_MIB = 30.0, 5.0
#: Steps of SQLite's machine between two checks of the clock and of signals: some ms.
_STEPS = 200_000


class Bounded(sqlite3.Connection):
    """A connection to a file from a possible stranger: every read is limited, and a signal ends it.

    Python delivers signals only while its own code runs. SQLite calls back every few ms for that purpose. An exception
    from a signal, or the time limit, then ends the statement.
    """

    _until = float("inf")
    _limit_s = STATEMENT_LIMIT_S

    def bound(self, file_bytes: int) -> None:
        """Set all limits; once, before the first statement."""
        for name, most in _SQLITE_LIMITS.items():
            self.setlimit(name, most)
        self._limit_s = STATEMENT_LIMIT_S + STATEMENT_LIMIT_S_A_MIB * file_bytes / 2**20
        self.set_progress_handler(self._over, _STEPS)
        # Do not trust functions in a schema, check cells as they are read, and do not map the file into memory.
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "foreign_keys = ON"):
            self.execute(f"PRAGMA {pragma}")

    def execute(self, *words: object) -> sqlite3.Cursor:
        """Execute a statement, as every connection does, and start its clock.

        The clock is the processor time of this thread, without waiting.
        """
        self._until = time.thread_time() + stretched(self._limit_s)
        return super().execute(*words)  # type: ignore[arg-type]

    def _over(self) -> bool:
        return self.timed_out

    @property
    def timed_out(self) -> bool:
        """True if the time of the last statement is over."""
        return time.thread_time() > self._until
