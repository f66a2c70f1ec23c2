"""A campaign's file: SQLite, every trial durable before the next begins.

While a run holds the file it is in WAL mode with ``synchronous=FULL``; a clean close folds the log into the one
file, so that the file alone is what is kept, copied and shared. A `Store` belongs to the thread that opened it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from types import TracebackType

import polars as pl
import zstandard

from tare.errors import StoreError
from tare.model import Tick, Trial, TrialKey
from tare.store import connection, frames, segments
from tare.store.durations import with_turns
from tare.store.record import CampaignRecord
from tare.store.schema import SEGMENTS_SINCE, TELEMETRY_SINCE
from tare.store.segments import Segment

#: Bytes that are kept of each raw output; the length before the cap is stored beside it.
OUTPUT_CAP = 1 << 20
#: The same of attachments.
ATTACHMENT_CAP = 1 << 26
_TICK_COLUMNS = tuple(one.name for one in fields(Tick) if one.name not in {"cpus", "instances"})
_INSERT_TICK = f"INSERT INTO tick ({', '.join(_TICK_COLUMNS)}) VALUES ({', '.join('?' * len(_TICK_COLUMNS))})"  # noqa: S608


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth knowing that happened while the campaign ran; ``at`` is UNIX time."""

    at: float
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Output:
    """A raw output of a trial: what was kept, and how long it was."""

    data: bytes
    full_bytes: int

    @property
    def capped(self) -> bool:
        """Whether more was produced than is kept."""
        return self.full_bytes > len(self.data)


class Store:
    """One campaign file. Use `create`, `open` or `read`; a context manager, closing on exit."""

    def __init__(self, path: Path, db: sqlite3.Connection, told: connection.Told, lock: connection.Lock | None) -> None:
        self.path = path
        self.record = told.record
        #: Fields of the record that this tare does not know. They stay in the file, and no campaign goes on in it.
        self.unknown_fields = told.unknown
        self._db = db
        self._lock = lock
        self._meter: segments.Meter | None = None
        self._names = frames.Names.of(self.record)
        self._arms = {arm: index for index, arm in enumerate(self._names.arms)}
        self._workloads = {workload: index for index, workload in enumerate(self._names.workloads)}
        self._metrics = {pair: index for index, pair in enumerate(self._names.metrics)}

    # --- opening and closing -------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, record: CampaignRecord) -> Store:
        """Make a new file. Raises `StoreError` when it exists (nothing is ever overwritten) or cannot be made."""
        lock, db = connection.make(path)
        store = cls(path, db, connection.Told(record), lock)
        store._write_names()
        return store

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open to go on with a campaign. Raises `StoreError`; another process that writes to it counts."""
        lock, db, told = connection.attach(path)
        return cls(path, db, told, lock)

    @classmethod
    def read(cls, path: Path) -> Store:
        """Open to read only, also while a run is writing. Raises `StoreError`."""
        db, told = connection.view(path)
        return cls(path, db, told, None)

    def close(self) -> None:
        """Close. A writer folds the log into the file; a reader that is still there leaves that to the next."""
        if self._lock is not None:
            connection.fold(self._db)
        self._db.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_names(self) -> None:
        with self._writing("the record"):
            self._set("record", self.record.model_dump_json())
            self._set("status", "planned")
            self._db.executemany("INSERT INTO workload VALUES (?, ?)", [(i, n) for n, i in self._workloads.items()])
            self._db.executemany(
                "INSERT INTO arm VALUES (?, ?, ?)", [(i, a.platform, a.replica) for a, i in self._arms.items()]
            )
            self._db.executemany(
                "INSERT INTO metric VALUES (?, ?, ?)",
                [(i, self._workloads[w], m) for (w, m), i in self._metrics.items()],
            )

    # --- time ----------------------------------------------------------------------------------------------

    @contextmanager
    def working(self, boot: str | None = None) -> Iterator[None]:
        """Time in here is the campaign's work. Every write keeps how far it came: a kill loses what came after.

        ``boot``: the kernel's id of this boot.
        """
        with self._writing("the segment"):
            self._meter = segments.Meter(self._db, boot)
        try:
            yield
        finally:
            with self._writing("the segment"):
                pass  # every write keeps the time
            self._meter = None

    def segments(self) -> list[Segment]:
        """When the campaign was at work, in order. Of a file that does not tell, estimated from its trials."""
        with connection.translated(self.path):
            there = connection.version(self._db) >= SEGMENTS_SINCE
            return (segments.kept(self._db) if there else []) or segments.estimate(self._db)

    # --- facts ---------------------------------------------------------------------------------------------

    def _set(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, value))

    @property
    def status(self) -> str:
        """How the campaign stands: planned, running, complete, interrupted ..."""
        row = self._db.execute("SELECT value FROM fact WHERE name = 'status'").fetchone()
        return str(row[0]) if row else "unknown"

    def set_status(self, status: str) -> None:
        """Say how the campaign stands; durable on return."""
        with self._writing("the status"):
            self._set("status", status)

    def add_event(self, level: str, text: str) -> None:
        """Record something worth knowing, with the time."""
        with self._writing("an event"):
            self._db.execute("INSERT INTO event (at, level, text) VALUES (?, ?, ?)", (time.time(), level, text))

    def events(self) -> list[Event]:
        """All events in order."""
        return [Event(*row) for row in self._db.execute("SELECT at, level, text FROM event ORDER BY id")]

    def add_attachment(self, name: str, data: bytes) -> None:
        """Keep a file that explains something (say, a console log); the same name may come again."""
        packed = zstandard.ZstdCompressor().compress(data[:ATTACHMENT_CAP])
        with self._writing(f"attachment {name}"):
            self._db.execute("INSERT INTO attachment (at, name, zstd) VALUES (?, ?, ?)", (time.time(), name, packed))

    def replace_attachments(self, name: str, contents: Iterable[bytes]) -> None:
        """Put these in the place of all attachments of this name: all of them or, after a kill, none."""
        compress = zstandard.ZstdCompressor().compress
        packed = [(time.time(), name, compress(data[:ATTACHMENT_CAP])) for data in contents]
        with self._writing(f"attachments {name}"):
            self._db.execute("DELETE FROM attachment WHERE name = ?", (name,))
            self._db.executemany("INSERT INTO attachment (at, name, zstd) VALUES (?, ?, ?)", packed)

    def attachments(self) -> list[tuple[str, bytes]]:
        """All attachments in order, as name and contents."""
        rows = self._db.execute("SELECT name, zstd FROM attachment ORDER BY id")
        return [(name, unpack(packed, ATTACHMENT_CAP)) for name, packed in rows]

    def attached(self, name: str) -> Iterator[bytes]:
        """The contents of the attachments of this name, in order and one after the other."""
        rows = self._db.execute("SELECT zstd FROM attachment WHERE name = ? ORDER BY id", (name,))
        return (unpack(packed, ATTACHMENT_CAP) for (packed,) in rows)

    # --- schedule and trials -------------------------------------------------------------------------------

    def plan_block(self, block: int, keys: Sequence[TrialKey]) -> None:
        """Append a block's trials to the schedule, in order. Raises `StoreError` when one is there already."""
        first = int(self._db.execute("SELECT coalesce(max(seq) + 1, 0) FROM schedule").fetchone()[0])
        rows = []
        for seq, key in enumerate(keys, first):
            if key.block != block:
                raise StoreError(f"{_say(key)} does not belong to block {block}")
            rows.append((seq, *self._ids(key)))
        with self._writing(f"the schedule of block {block}"):
            self._db.executemany("INSERT INTO schedule VALUES (?, ?, ?, ?)", rows)

    def schedule(self) -> list[TrialKey]:
        """All planned trials in order; a trial's ``seq`` is its place here."""
        return self._keys("SELECT block, workload, arm FROM schedule ORDER BY seq")

    def done(self) -> set[TrialKey]:
        """The trials that are in the file, however they ended."""
        return set(self._keys("SELECT block, workload, arm FROM trial"))

    def commit_trials(self, trials: Sequence[Trial], telemetry: Sequence[Tick] = ()) -> None:
        """Write trials with all that belongs to them, and the ticks that came meanwhile: all or nothing, on disk.

        Raises `StoreError` for a trial that is there already, or one that the record does not know.
        """
        with self._writing(", ".join(_say(trial.key) for trial in trials) or "the telemetry"):
            for trial in trials:
                self._insert(trial)
            for tick in telemetry:
                self._insert_tick(tick)

    def _insert_tick(self, tick: Tick) -> None:
        values = [getattr(tick, name) for name in _TICK_COLUMNS]
        row = self._db.execute(_INSERT_TICK, values).lastrowid
        cpus = [(row, *astuple(one)) for one in tick.cpus]
        self._db.executemany("INSERT INTO tick_cpu VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", cpus)
        instances = [
            (row, self._arms[one.arm], one.cpu_ns, one.memory_bytes, one.throttled, one.throttled_ns)
            for one in tick.instances
        ]
        self._db.executemany("INSERT INTO tick_instance VALUES (?, ?, ?, ?, ?, ?)", instances)

    def _insert(self, trial: Trial) -> None:
        seen = (trial.seq, trial.started, trial.wall_ns, trial.cpu_ns, trial.daemon_cpu_ns)
        around = (trial.steal, trial.pressure, trial.load)
        cursor = self._db.execute(
            "INSERT INTO trial (block, workload, arm, status, reason, seq, started, wall_ns, cpu_ns, daemon_cpu_ns,"
            " steal, pressure, load) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*self._ids(trial.key), trial.status.value, trial.reason, *seen, *around),
        )
        row, workload = cursor.lastrowid, trial.key.workload
        samples = [(row, self._metric(workload, s.metric), s.round, s.value) for s in trial.samples]
        self._db.executemany("INSERT INTO sample VALUES (?, ?, ?, ?)", samples)
        self._db.executemany(
            "INSERT INTO slice VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (row, s.round, s.position, s.start_ns, s.wall_ns, s.cpu_ns, s.daemon_cpu_ns, s.late_ns)
                for s in trial.slices
            ],
        )
        squeeze = zstandard.ZstdCompressor()
        for name, data in trial.outputs.items():
            kept = data[:OUTPUT_CAP]
            values = (row, name, len(data), len(data) > len(kept), squeeze.compress(kept))
            self._db.execute("INSERT INTO output VALUES (?, ?, ?, ?, ?)", values)

    def outputs(self, key: TrialKey) -> dict[str, Output]:
        """The raw outputs of a trial by name; empty when it has none."""
        rows = self._db.execute(
            "SELECT name, zstd, bytes FROM output JOIN trial ON trial.id = output.trial"
            " WHERE block = ? AND workload = ? AND arm = ? ORDER BY name",
            self._ids(key),
        )
        return {name: Output(unpack(packed, OUTPUT_CAP), full) for name, packed, full in rows}

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is read inside is of one instant, also while a run is writing."""
        with connection.translated(self.path):
            self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._roll_back()

    # --- frames --------------------------------------------------------------------------------------------

    def samples(self, first: int = 0, end: int | None = None) -> pl.DataFrame:
        """Every sample of every trial that ended ok, in blocks from ``first`` to before ``end`` (None: the last).

        Columns: block, workload, platform, replica, metric, round, value. What a failed trial left is in the file
        and in `tare export`, and never in an estimate.
        """
        with connection.translated(self.path):
            return frames.samples(self._db, self._names, first, end)

    def trials(self) -> pl.DataFrame:
        """Every trial, in order of the schedule: its key, how it ended and why, and what the host saw of it.

        Columns: seq, block, workload, platform, replica, status, reason, started (UNIX s), wall_ns, cpu_ns,
        daemon_cpu_ns, steal, pressure, load; null where the host could not see it; turn_s (see `durations`).
        """
        with connection.translated(self.path):
            return with_turns(frames.trials(self._db, self._names), self.segments())

    def slices(self) -> pl.DataFrame:
        """Every slice of every trial, in ns of the host's monotonic clock.

        Columns: block, workload, platform, replica, round, position, start_ns, wall_ns, cpu_ns, daemon_cpu_ns, late_ns.
        """
        with connection.translated(self.path):
            return frames.slices(self._db, self._names)

    def telemetry(self) -> frames.Telemetry:
        """What the host was doing meanwhile; empty frames in a file that has none."""
        with connection.translated(self.path):
            return frames.telemetry(self._db, self._names, there=connection.version(self._db) >= TELEMETRY_SINCE)

    def rows(self) -> Iterator[dict[str, object]]:
        """Every sample with the facts of its trial, whatever its status; a trial without samples gives one row.

        Keys: the columns of `trials` but turn_s, then metric, round and value (None where there is no sample). Streams.
        """
        with connection.translated(self.path):
            yield from frames.rows(self._db, self._names)

    # --- small print ---------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        """One transaction: all of it is on disk after it, or nothing. Raises `StoreError`."""
        with connection.translated(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                connection.bring_up(self._db)
                yield
                if self._meter is not None:
                    self._meter.advance()
                self._db.execute("COMMIT")
            except sqlite3.IntegrityError as error:
                self._roll_back()
                raise StoreError(f"{what}: {_refusal(error)}") from error
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _keys(self, query: str) -> list[TrialKey]:
        rows = self._db.execute(query)
        return [TrialKey(block, self._names.workloads[w], self._names.arms[a]) for block, w, a in rows]

    def _ids(self, key: TrialKey) -> tuple[int, int, int]:
        workload, arm = self._workloads.get(key.workload), self._arms.get(key.arm)
        if workload is None or arm is None:
            raise StoreError(f"{_say(key)} is not of this campaign: its record does not name it")
        return key.block, workload, arm

    def _metric(self, workload: str, metric: str) -> int:
        code = self._metrics.get((workload, metric))
        if code is None:
            raise StoreError(f"metric {metric} of workload {workload} is not in the campaign's record")
        return code


def _say(key: TrialKey) -> str:
    return f"trial {key.workload} on {key.arm} in block {key.block}"


def _refusal(error: sqlite3.IntegrityError) -> str:
    """What a broken constraint means: the words of SQLite name columns, and not what was done twice."""
    text = str(error)
    if "UNIQUE" in text:
        return "is in the file already, or has the same round twice; nothing of it was written"
    return f"does not hold ({text}); nothing of it was written"


def unpack(packed: bytes, cap: int) -> bytes:
    """Undo zstandard; a file from elsewhere may lie about the length, so no more than ``cap`` bytes come out."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            return reader.read(cap)
    except zstandard.ZstdError as error:
        raise StoreError(f"a stored output cannot be unpacked: {error}", fix="take a copy that is whole") from error
