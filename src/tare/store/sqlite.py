"""A campaign in a file: SQLite, with every trial durable before the next starts.

While a run holds the file it is in WAL mode with ``synchronous=FULL``. A clean close moves the log into the file, so
that the file alone can be kept, copied and shared.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from types import TracebackType

import polars as pl
import zstandard

from tare.errors import StoreError
from tare.footprint_model import Footprint, Surface
from tare.model import CampaignStatus, Tick, Trial, TrialKey
from tare.records import one_line
from tare.safe_text import encodable
from tare.store import attachments, connection, footprint_rows, migrations, row_frames, segments, surfaces
from tare.store.durations import with_turns
from tare.store.limits import ATTACHMENT_CAP, MAX_EVENT_TEXT, MAX_EVENTS, OUTPUT_CAP, Bounded
from tare.store.packed import Output, unpack
from tare.store.protocol import Event, Marker, Telemetry
from tare.store.record import CampaignRecord
from tare.store.row_rules import BrokenError, frame
from tare.store.segments import Segment

_TICK_COLUMNS = tuple(field.name for field in fields(Tick) if field.name not in {"cpus", "instances"})
_INSERT_TICK = f"INSERT INTO tick ({', '.join(_TICK_COLUMNS)}) VALUES ({', '.join('?' * len(_TICK_COLUMNS))})"  # noqa: S608


class SqliteStore:
    """A `tare.store.protocol.Store` in a file, created and opened by `tare.store.opening`."""

    def __init__(self, path: Path, db: Bounded, stored: connection.StoredRecord, lock: connection.Lock | None) -> None:
        self._path = path
        self.location, self.name = encodable(str(path)), encodable(path.name)
        self.record, self.record_text = stored.record, stored.text
        #: Fields of the record that this tare does not know. They stay in the file, and tare does not continue its
        #: campaign.
        self.unknown_fields = stored.unknown
        self._db = db
        self._lock = lock
        self._meter: segments.Meter | None = None
        #: Ids of the names in footprints, after the first was added; empty if they must be read (again).
        self._things: dict[str, int] = {}
        self._names = row_frames.Names.of(self.record)
        self._arms = {arm: index for index, arm in enumerate(self._names.arms)}
        self._workloads = {workload: index for index, workload in enumerate(self._names.workloads)}
        self._metrics = {pair: index for index, pair in enumerate(self._names.metrics)}

    # --- opening and closing -------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, record: CampaignRecord, marked: Marker | None = None) -> SqliteStore:
        """Create a file. Raises `StoreError` if it exists (nothing is ever overwritten) or cannot be created."""
        text = record.model_dump_json()
        mark = marked(text) if marked is not None else None
        lock, db = connection.make(path)
        with connection.unmade(lock):
            store = cls(path, db, connection.StoredRecord(record, text), lock)
            try:
                store._write_names(mark)
            except BaseException:
                db.close()
                raise
        return store

    @classmethod
    def open(cls, path: Path) -> SqliteStore:
        """Open a file to continue its campaign. Raises `StoreError`, also if another process is writing to it."""
        lock, db, stored = connection.attach(path)
        return cls(path, db, stored, lock)

    @classmethod
    def read(cls, path: Path) -> SqliteStore:
        """Open for reading only, also while a run is writing. Raises `StoreError`."""
        db, stored = connection.view(path)
        return cls(path, db, stored, None)

    def close(self) -> None:
        """Close. A writer moves the log into the file; if a reader has it open, a later close does so."""
        if self._lock is not None:
            connection.fold(self._db)
        self._db.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_names(self, mark: str | None) -> None:
        with self._writing("the record"):
            self._set("record", self.record_text)
            if mark is not None:
                self._set("mark", mark)
            self._set("status", CampaignStatus.PLANNED)
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
        """Count the time inside as the campaign's work. Every write stores it: a kill loses only later time.

        ``boot``: the kernel's id of this boot.
        """
        with self._writing("the segment"):
            self._meter = segments.Meter(self._db, boot)
        try:
            yield
        finally:
            with self._writing("the segment"):
                pass  # Every write stores the time.
            self._meter = None

    def segments(self) -> list[Segment]:
        """Return the working periods in order; if the campaign recorded none, estimated from its trials."""
        with self._translated():
            return segments.recorded(self._db) or segments.estimate(self._db)

    # --- facts ---------------------------------------------------------------------------------------------

    def _set(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, value))

    @property
    def status(self) -> CampaignStatus:
        """Return the campaign's status."""
        with self._translated():
            text = connection.fact(self._db, "status")
        return next((status for status in CampaignStatus if status == text), CampaignStatus.UNKNOWN)

    @property
    def mark(self) -> str | None:
        """The mark of the record's author; None if the record is not marked."""
        with self._translated():
            return connection.fact(self._db, "mark")

    def set_status(self, status: CampaignStatus) -> None:
        """Set the campaign's status; durable on return."""
        with self._writing("the status"):
            self._set("status", status)

    def add_event(self, level: str, text: str) -> None:
        """Record an event worth knowing, with the time."""
        with self._writing("an event"):
            values = (time.time(), level, encodable(text))
            self._db.execute("INSERT INTO event (at, level, text) VALUES (?, ?, ?)", values)

    def events(self) -> list[Event]:
        """Return all events in order. Raises `StoreError`."""
        with self._translated():
            length = self._db.execute("SELECT total(length(text)) FROM event").fetchone()[0]
            if length > MAX_EVENT_TEXT:
                raise BrokenError(f"its events have more than {MAX_EVENT_TEXT >> 20} Mi characters")
            rows = frame(self._db, "SELECT at, level, text FROM event ORDER BY id", most=MAX_EVENTS)
        return [Event(at, level, one_line(text)) for at, level, text in rows.iter_rows()]

    def add_attachment(self, name: str, data: bytes) -> None:
        """Store a file that explains something (a console log, for example). A name may occur more than once."""
        packed = zstandard.ZstdCompressor().compress(data[:ATTACHMENT_CAP])
        with self._writing(f"attachment {name}"):
            values = (time.time(), encodable(name), packed)
            self._db.execute("INSERT INTO attachment (at, name, zstd) VALUES (?, ?, ?)", values)

    def attachments(self) -> list[tuple[str, bytes]]:
        """Return all attachments in order, as name and contents."""
        with self._translated():
            return [(attachment.name, attachment.content) for attachment in attachments.unpacked(self._db)]

    # --- footprints and surfaces ---------------------------------------------------------------------------

    def add_footprint(self, footprint: Footprint) -> None:
        """Store what ran in the host's kernel; durable on return."""
        with self._writing("a footprint"):
            footprint_rows.add(self._db, [(time.time(), footprint)], self._things)

    def footprints(self) -> Iterator[Footprint]:
        """Yield all footprints in order. A name is the same object in all of them."""
        with self._translated():
            yield from footprint_rows.read(self._db)

    def add_surface(self, surface: Surface) -> None:
        """Store the kernel calls that a platform allows, beside earlier surfaces of the platform."""
        with self._writing("a surface"):
            surfaces.add(self._db, [surface])

    def surfaces(self) -> Iterator[Surface]:
        """Yield all surfaces in the order in which they were stored."""
        with self._translated():
            yield from surfaces.read(self._db)

    # --- schedule and trials -------------------------------------------------------------------------------

    def plan_block(self, block: int, keys: Sequence[TrialKey]) -> None:
        """Append a block's trials to the schedule, in order. Raises `StoreError` for a duplicate trial."""
        first = int(self._db.execute("SELECT coalesce(max(seq) + 1, 0) FROM schedule").fetchone()[0])
        rows = []
        for seq, key in enumerate(keys, first):
            if key.block != block:
                raise StoreError(f"{_say(key)} does not belong to block {block}")
            rows.append((seq, *self._ids(key)))
        with self._writing(f"the schedule of block {block}"):
            self._db.executemany("INSERT INTO schedule VALUES (?, ?, ?, ?)", rows)

    def schedule(self) -> list[TrialKey]:
        """Return all planned trials in order; a trial's ``seq`` is its position here."""
        with self._translated():
            return row_frames.keys(self._db, self._names, "schedule")

    def done(self) -> set[TrialKey]:
        """Return the trials in the file, however they ended."""
        with self._translated():
            return set(row_frames.keys(self._db, self._names, "trial"))

    def commit_trials(self, trials: Sequence[Trial], telemetry: Sequence[Tick] = ()) -> None:
        """Write trials with all their data, and the ticks since the last write: all or nothing, on disk.

        Raises `StoreError` for a trial that already exists, or that the record does not know.
        """
        with self._writing(", ".join(_say(trial.key) for trial in trials) or "the telemetry"):
            for trial in trials:
                self._insert(trial)
            for tick in telemetry:
                self._insert_tick(tick)

    def _insert_tick(self, tick: Tick) -> None:
        values = [getattr(tick, name) for name in _TICK_COLUMNS]
        row = self._db.execute(_INSERT_TICK, values).lastrowid
        cpus = [(row, *astuple(cpu)) for cpu in tick.cpus]
        self._db.executemany("INSERT INTO tick_cpu VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", cpus)
        instances = [
            (row, self._arms[usage.arm], usage.cpu_ns, usage.memory_bytes, usage.throttled, usage.throttled_ns)
            for usage in tick.instances
        ]
        self._db.executemany("INSERT INTO tick_instance VALUES (?, ?, ?, ?, ?, ?)", instances)

    def _insert(self, trial: Trial) -> None:
        reason = None if trial.reason is None else encodable(trial.reason)
        order_and_times = (trial.seq, trial.started, trial.wall_ns, trial.cpu_ns, trial.daemon_cpu_ns)
        around = (trial.steal, trial.pressure, trial.load)
        cursor = self._db.execute(
            "INSERT INTO trial (block, workload, arm, status, reason, seq, started, wall_ns, cpu_ns, daemon_cpu_ns,"
            " steal, pressure, load) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*self._ids(trial.key), trial.status.value, reason, *order_and_times, *around),
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
        if trial.clock is not None:
            self._db.execute("INSERT INTO inside_clock VALUES (?, ?, ?, ?, ?)", (row, *astuple(trial.clock)))
        squeeze = zstandard.ZstdCompressor()
        for name, data in trial.outputs.items():
            head = data[:OUTPUT_CAP]
            values = (row, encodable(name), len(data), len(data) > len(head), squeeze.compress(head))
            self._db.execute("INSERT INTO output VALUES (?, ?, ?, ?, ?)", values)

    def outputs(self, key: TrialKey) -> dict[str, Output]:
        """Return the raw outputs of a trial by name; empty if it has none."""
        query = (
            "SELECT name, zstd, bytes FROM output JOIN trial ON trial.id = output.trial"
            " WHERE block = ? AND workload = ? AND arm = ? ORDER BY name"
        )
        with self._translated():
            rows = self._db.execute(query, self._ids(key))
            return {str(name): Output(unpack(packed, OUTPUT_CAP), int(full)) for name, packed, full in rows}

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Make all reads inside see the same state, also while a run is writing."""
        with self._translated():
            self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._roll_back()

    # --- frames --------------------------------------------------------------------------------------------

    def samples(self, first: int = 0, end: int | None = None) -> pl.DataFrame:
        """Return every sample of every successful trial, in blocks from ``first`` to before ``end`` (None: the last).

        Columns: block, workload, platform, replica, metric, round, value. Samples of a failed trial are in the file and
        in `tare export`, but never in an estimate.
        """
        with self._translated():
            return row_frames.samples(self._db, self._names, first, end)

    def trials(self) -> pl.DataFrame:
        """Return every trial, in order of the schedule: its key, status and reason, and the host's observations.

        Columns: seq, block, workload, platform, replica, status, reason, started (UNIX s), wall_ns, cpu_ns,
        daemon_cpu_ns, steal, pressure, load; null if the host could not see it; clock_offset_ns, clock_offset_error_ns,
        clock_rate_low, clock_rate_high: `tare.model.ClockFacts`, null if a clock inside timed nothing; turn_s (see
        `durations`).
        """
        with self._translated():
            timed = row_frames.with_clocks(
                row_frames.trials(self._db, self._names), row_frames.clocks(self._db, self._names)
            )
            return with_turns(timed, self.segments())

    def slices(self) -> pl.DataFrame:
        """Return every slice of every trial, in ns of the host's monotonic clock.

        Columns: block, workload, platform, replica, round, position, start_ns, wall_ns, cpu_ns, daemon_cpu_ns, late_ns.
        """
        with self._translated():
            return row_frames.slices(self._db, self._names)

    def telemetry(self) -> Telemetry:
        """Return the host's activity during the campaign; empty frames if the file has none."""
        with self._translated():
            return row_frames.telemetry(self._db, self._names)

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield every sample with the facts of its trial, whatever its status; a trial without samples yields one row.

        Keys: the columns of `trials` without those of the clock inside and turn_s, then metric, round and value (None
        without a sample). Streams.
        """
        with self._translated():
            yield from row_frames.rows(self._db, self._names)

    # --- small print ---------------------------------------------------------------------------------------

    def _translated(self) -> AbstractContextManager[None]:
        """Convert errors that SQLite and `tare.store.row_rules` find in the file to `StoreError`."""
        return connection.translated(self._path, self._db)

    @contextmanager
    def _writing(self, written: str) -> Iterator[None]:
        """Run one transaction: all of it is on disk afterwards, or nothing. Raises `StoreError`."""
        connection.await_space(self._path)
        with self._translated():
            if self._db.in_transaction:  # An interrupt ended an earlier write outside of the block below.
                self._roll_back()
            self._db.execute("BEGIN IMMEDIATE")
            try:
                migrations.bring_up(self._db)
                yield
                if self._meter is not None:
                    self._meter.advance()
                self._db.execute("COMMIT")
            except sqlite3.IntegrityError as error:
                self._roll_back()
                raise StoreError(f"{written}: {_refusal(error)}") from error
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        self._things.clear()
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

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
    """Return the meaning of a broken constraint. SQLite's message names columns, not the duplicated action."""
    text = str(error)
    if "UNIQUE" in text:
        return "is in the file already, or has the same round twice; nothing of it was written"
    return f"is not valid ({text}); nothing of it was written"
