"""How large a campaign file may be where it counts: a file may come from a stranger, and costs no more than these.

Each is far beyond what a campaign makes, and what is beyond it is refused with one line.
"""

from __future__ import annotations

import sqlite3
import time

from tare.timeouts import stretched

#: Bytes that are kept of each raw output; the length before the cap is stored beside it.
OUTPUT_CAP = 1 << 20
#: Bytes of one attachment, unpacked, and of all of a name that are unpacked in one go.
ATTACHMENT_CAP, ATTACHED_CAP = 1 << 26, 1 << 30
#: The longest text or blob, in bytes: an attachment that cannot be packed any smaller.
MAX_VALUE_BYTES = ATTACHMENT_CAP + (1 << 20)
#: Bytes of the packed hits of one footprint: some two million things that ran.
HITS_CAP = 1 << 23
#: Characters of the record. pydantic's own limit for JSON within JSON is some 200 levels.
MAX_RECORD_CHARS = 1 << 24
#: Rows of each table: samples, the ticks of the telemetry, and what has less of them.
MAX_SAMPLES, MAX_TICKS, MAX_ROWS = 200_000_000, 20_000_000, 5_000_000
#: Events, and characters of all of them.
MAX_EVENTS, MAX_EVENT_TEXT = 100_000, 1 << 26
#: Arms times metrics: the cells of a report.
MAX_CELLS = 100_000
#: The largest integer of SQLite, and of every counter.
MAX = 2**63 - 1
#: A moment beyond that (the year 5138) is none, in UNIX seconds; a clock that was never set is in 1970.
LAST_MOMENT = 1e11

#: Of what SQLite would take from a file's own schema. That is compared with ours before anything of it is used.
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
#: Processor time that a statement may take: a hundred times what the slowest takes of a file of its size.
STATEMENT_LIMIT_S, STATEMENT_LIMIT_S_A_MIB = 30.0, 5.0
#: Steps of SQLite's machine between two looks at the clock, and at the signals that came: some ms.
_STEPS = 200_000


class Bounded(sqlite3.Connection):
    """A connection to what a stranger may have made: nothing is without end, and a signal ends all of it.

    Python delivers signals only while its own code runs. SQLite calls back for that every few ms: what a signal raises
    then ends the statement, as its time limit does.
    """

    _until = float("inf")
    _limit_s = STATEMENT_LIMIT_S

    def bound(self, file_bytes: int) -> None:
        """Set all limits; once, before the first statement."""
        for name, most in _SQLITE_LIMITS.items():
            self.setlimit(name, most)
        self._limit_s = STATEMENT_LIMIT_S + STATEMENT_LIMIT_S_A_MIB * file_bytes / 2**20
        self.set_progress_handler(self._over, _STEPS)
        # Functions that a schema names are none that could do harm, and what is read is read as it is written.
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "foreign_keys = ON"):
            self.execute(f"PRAGMA {pragma}")

    def execute(self, *words: object) -> sqlite3.Cursor:
        """Execute a statement, as every connection does, and begin to count its time.

        That is processor time of this thread, without waiting.
        """
        self._until = time.thread_time() + stretched(self._limit_s)
        return super().execute(*words)  # type: ignore[arg-type]

    def _over(self) -> bool:
        return self.timed_out

    @property
    def timed_out(self) -> bool:
        """Whether the time of the last statement is over."""
        return time.thread_time() > self._until
