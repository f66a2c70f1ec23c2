"""Opening campaign files: what is tare's and whole is opened, everything else is reported and left as it is."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, NamedTuple
from urllib.parse import quote

from pydantic import ValidationError

import tare
from tare.errors import StoreError, first_invalid
from tare.store import shape
from tare.store.limits import MAX_RECORD_CHARS, Bounded
from tare.store.migrations import READABLE, bring_up, version
from tare.store.places import log_of
from tare.store.reading import known_part, may_be_newer
from tare.store.record import CampaignRecord
from tare.store.rows import BrokenError, UnknownError
from tare.store.schema import APPLICATION_ID
from tare.timeouts import stretched, until

_BUSY_S = 10.0
_SPACE_LIMIT_S, _MIN_SPACE = 5.0, 64 << 10
#: Characters that are shown of the version that a file names.
_MAX_VERSION_CHARS = 40
#: Characters that are shown of SQLite's reason, which may quote the file.
_MAX_REASON_CHARS = 200


class Lock:
    """The right to write to a file: one process at a time, gone with the process however it ends."""

    #: Closing any descriptor of a file drops all POSIX locks that the process has on it, SQLite's too. So a file
    #: that this process writes already is refused before it is opened a second time.
    _held: ClassVar[set[tuple[int, int]]] = set()

    def __init__(self, path: Path) -> None:
        facts = path.stat()
        self._file = (facts.st_dev, facts.st_ino)
        if self._file in self._held:
            raise _busy(path)
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            raise _busy(path) from None
        self._held.add(self._file)

    def release(self) -> None:
        """Give it up; after the connection is closed."""
        self._held.discard(self._file)
        os.close(self._fd)


def make(path: Path) -> tuple[Lock, Bounded]:
    """A new file with the schema in it. Raises `StoreError` when ``path`` exists or cannot be made."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        raise StoreError(f"{path} exists", fix="choose another name with -o, or go on with it: --resume") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be made: {error.strerror}", fix="choose another place with -o") from None
    lock = Lock(path)
    with translated(path):
        db = _connect(path, "rw")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        _write_ahead(db)
        db.execute("BEGIN")
        bring_up(db)
        db.execute("COMMIT")
    return lock, db


class StoredRecord(NamedTuple):
    """The record in a file, and the fields of it that this tare does not know (they stay in the file)."""

    record: CampaignRecord
    text: str  # the record's, as it is in the file
    unknown: tuple[str, ...] = ()


def attach(path: Path) -> tuple[Lock, Bounded, StoredRecord]:
    """An existing file, to write to. Raises `StoreError`."""
    lock = Lock(path)
    try:
        db, stored = _admit(path, "rw")
        with translated(path):
            _write_ahead(db)
    except BaseException:
        lock.release()
        raise
    return lock, db, stored


def view(path: Path) -> tuple[Bounded, StoredRecord]:
    """An existing file, to read, also beside a writer. Raises `StoreError`."""
    return _admit(path, _reading_mode(path))


def _admit(path: Path, mode: str) -> tuple[Bounded, StoredRecord]:
    """Open and check; closed again when it is refused."""
    with translated(path):
        db = _connect(path, mode)
    try:
        with translated(path, db):
            _require_ours(db, path)
            return db, _load_record(db, path)
    except BaseException:
        db.close()
        raise


def _load_record(db: sqlite3.Connection, path: Path) -> StoredRecord:
    text = fact(db, "record")
    if text is None:
        raise _cut_off(path)
    if len(text) > MAX_RECORD_CHARS:
        raise StoreError(f"{path} is damaged: its record is longer than {MAX_RECORD_CHARS >> 20} Mi characters")
    try:
        record, unknown = known_part(CampaignRecord, text)
        return StoredRecord(record, text, unknown)
    except ValidationError as error:
        raise _unreadable(error, _writer(db), path) from None


def _unreadable(error: ValidationError, writer: str | None, path: Path) -> StoreError:
    """A record that is not valid is damaged only where this version of tare wrote it; else it may be a newer one's."""
    if writer is None or (writer == tare.__version__ and not may_be_newer(error)):
        return StoreError(f"{path} is damaged: its record is not valid: {first_invalid(error)}")
    return StoreError(
        f"{path}: tare {writer} wrote its record, and tare {tare.__version__} does not know it: {first_invalid(error)}",
        fix=f"use tare {writer}, or a later one",
    )


def _writer(db: sqlite3.Connection) -> str | None:
    """The version of tare that made the file; None where it is not recorded."""
    with suppress(sqlite3.Error, ValueError, RecursionError):
        record = json.loads(fact(db, "record") or "") if shape.has_facts(db) else None
        writer = record.get("tare_version") if isinstance(record, dict) else None
        return writer[:_MAX_VERSION_CHARS] if isinstance(writer, str) else None
    return None


def await_space(path: Path) -> None:
    """Wait some seconds where the disk is full: an instance that has just filled it is about to lose its files."""
    deadline = until(_SPACE_LIMIT_S)
    while time.monotonic() < deadline:
        at = os.statvfs(path.parent)
        if at.f_bavail * at.f_frsize >= _MIN_SPACE:
            return
        time.sleep(0.05)


def fact(db: sqlite3.Connection, name: str) -> str | None:
    """The fact of this name in the file; None where there is none that is text."""
    row = db.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
    return row[0] if row is not None and isinstance(row[0], str) else None


def fold(db: sqlite3.Connection) -> None:
    """Bring the log into the one file. A reader that is still there keeps it in WAL mode, which loses nothing."""
    with suppress(sqlite3.OperationalError):
        db.execute("PRAGMA busy_timeout = 500")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def translated(path: Path, db: Bounded | None = None) -> Iterator[None]:
    """Raises `StoreError` in place of SQLite's errors within the context.

    ``db``: whose statements these are; raises `KeyboardInterrupt` where a signal ended one.
    """
    try:
        yield
    except UnknownError as error:
        fix = "read it with the version of tare that wrote it, or take a copy that is whole"
        raise StoreError(f"{path}: {error}", fix=fix) from error
    except BrokenError as error:
        raise _damaged(path, str(error)) from error
    except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_INTERRUPT:
            if db is None or not db.timed_out:
                raise KeyboardInterrupt from error
            raise StoreError(f"{path}: reading it takes too long for its size") from error
        if code == sqlite3.SQLITE_FULL:
            problem = f"{path} cannot be written: its disk is full; what was measured until then is in it"
            fix = f"free space there, and go on with it: tare run --resume {path}"
            raise StoreError(problem, fix=fix) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise StoreError(f"{path} is not a campaign file: it is not SQLite") from None
        # What Python finds in a column has no code: text that is not UTF-8.
        if isinstance(error, sqlite3.OperationalError) and code not in {None, sqlite3.SQLITE_ERROR}:
            fix = "see that the disk has space and the file may be used"
            raise StoreError(f"{path}: {error}", fix=fix) from error
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, why: str) -> StoreError:
    return StoreError(
        f"{path} is damaged: {' '.join(why.split())[:_MAX_REASON_CHARS]}", fix="take a copy that is whole"
    )


def _connect(path: Path, mode: str) -> Bounded:
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, timeout=stretched(_BUSY_S), isolation_level=None, factory=Bounded)
    try:
        db.bound(path.stat().st_size)
    except BaseException:
        db.close()
        raise
    return db


def _reading_mode(path: Path) -> str:
    """A file on a read-only medium cannot have the side files that WAL mode wants; nobody writes to it either."""
    lonely = not os.access(path.parent, os.W_OK) and not log_of(path).exists()
    return "ro&immutable=1" if lonely else "ro"


def _write_ahead(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")


def _require_ours(db: sqlite3.Connection, path: Path) -> None:
    identity = db.execute("PRAGMA application_id").fetchone()[0]
    if identity != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file, and not one of tare's", fix="name a file that `tare run -o` made")
    form = version(db)
    if form == 0:
        raise _cut_off(path)
    if form not in READABLE:
        writer, readable = _writer(db), f"{READABLE[0]} to {READABLE[-1]}"
        raise StoreError(
            f"{path} has format version {form}, and tare {tare.__version__} reads versions {readable}",
            fix=f"use tare {writer}, or a later one" if writer else "use the tare that wrote it",
        )
    if (strange := shape.foreign(db, form)) is not None:
        raise StoreError(f"{path} is not as tare writes it: {strange}", fix="take a copy that is as tare wrote it")
    answer = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if answer != "ok":
        raise StoreError(f"{path} is damaged: {' '.join(answer.split())}", fix="take a copy that is whole")


def _cut_off(path: Path) -> StoreError:
    return StoreError(f"{path} holds no campaign: it was cut off while it was made", fix="remove it and run again")


def _busy(path: Path) -> StoreError:
    return StoreError(f"{path} is being written by another run", fix="wait for it to end, or stop it")
