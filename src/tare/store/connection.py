"""Opening campaign files: what is ours and whole is let in, everything else is named and left as it is."""

from __future__ import annotations

import fcntl
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
from tare.errors import StoreError
from tare.outputs import require_campaign
from tare.patience import stretched, until
from tare.store import segments
from tare.store.reading import known_part, may_be_newer, why_not
from tare.store.record import CampaignRecord
from tare.store.schema import APPLICATION_ID, FORMAT_VERSION, READABLE, SCHEMA, SEGMENTS_SINCE, UPGRADES

_BUSY_S = 10.0
_SPACE_LIMIT_S, _LEAST_SPACE = 5.0, 64 << 10


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


def make(path: Path) -> tuple[Lock, sqlite3.Connection]:
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
        db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        _write_ahead(db)
        db.executescript(f"BEGIN;{SCHEMA}COMMIT;")
    return lock, db


class Told(NamedTuple):
    """What a file says of itself: its record, and the fields of it that this tare does not know (they stay in it)."""

    record: CampaignRecord
    unknown: tuple[str, ...] = ()


def attach(path: Path) -> tuple[Lock, sqlite3.Connection, Told]:
    """An existing file, to write to. Raises `StoreError`."""
    require_campaign(path)
    lock = Lock(path)
    try:
        db, told = _admit(path, "rw")
        with translated(path):
            _write_ahead(db)
    except StoreError:
        lock.release()
        raise
    return lock, db, told


def view(path: Path) -> tuple[sqlite3.Connection, Told]:
    """An existing file, to read, also beside a writer. Raises `StoreError`."""
    require_campaign(path)
    return _admit(path, _reading_mode(path))


def _admit(path: Path, mode: str) -> tuple[sqlite3.Connection, Told]:
    """Open and check; closed again when it is not let in."""
    with translated(path):
        db = _connect(path, mode)
    try:
        with translated(path):
            _require_ours(db, path)
            return db, _load_record(db, path)
    except StoreError:
        db.close()
        raise


def _load_record(db: sqlite3.Connection, path: Path) -> Told:
    row = db.execute("SELECT value FROM fact WHERE name = 'record'").fetchone()
    if row is None:
        raise StoreError(f"{path} holds no campaign: it was cut off while it was made", fix="remove it and run again")
    try:
        return Told(*known_part(CampaignRecord, row[0]))
    except ValidationError as error:
        raise _unreadable(error, _writer(db), path) from None


def _unreadable(error: ValidationError, writer: str | None, path: Path) -> StoreError:
    """Only what this tare itself could have written is damaged when it does not hold."""
    if writer is None or (writer == tare.__version__ and not may_be_newer(error)):
        return StoreError(f"{path} is damaged: its record does not hold: {why_not(error)}")
    return StoreError(
        f"{path}: tare {writer} wrote its record, and tare {tare.__version__} does not know it: {why_not(error)}",
        fix=f"use tare {writer}, or a later one",
    )


def _writer(db: sqlite3.Connection) -> str | None:
    """The version of tare that made the file; None where nothing says it."""
    with suppress(sqlite3.Error):
        row = db.execute("SELECT json_extract(value, '$.tare_version') FROM fact WHERE name = 'record'").fetchone()
        return None if row is None or row[0] is None else str(row[0])
    return None


def await_space(path: Path) -> None:
    """Wait some seconds where the disk is full: an instance that has just filled it is about to lose its files."""
    deadline = until(_SPACE_LIMIT_S)
    while time.monotonic() < deadline:
        at = os.statvfs(path.parent)
        if at.f_bavail * at.f_frsize >= _LEAST_SPACE:
            return
        time.sleep(0.05)


def fold(db: sqlite3.Connection) -> None:
    """Bring the log into the one file. A reader that is still there keeps it in WAL mode, which loses nothing."""
    with suppress(sqlite3.OperationalError):
        db.execute("PRAGMA busy_timeout = 500")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors as `StoreError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            what = f"{path} cannot be written: its disk is full; what was measured until then is in it"
            fix = f"free space there, and go on with it: tare run --resume {path}"
            raise StoreError(what, fix=fix) from error
        raise StoreError(f"{path}: {error}", fix="see that the disk has space and the file may be used") from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_NOTADB:
            raise StoreError(f"{path} is not a campaign file: it is not SQLite") from None
        raise StoreError(f"{path} is damaged: {error}", fix="take a copy that is whole") from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, timeout=stretched(_BUSY_S), isolation_level=None)
    db.execute("PRAGMA foreign_keys = ON")
    return db


def _reading_mode(path: Path) -> str:
    """A file on a read-only medium cannot have the side files that WAL mode wants; nobody writes to it either."""
    wal = path.with_name(path.name + "-wal")
    lonely = not os.access(path.parent, os.W_OK) and not wal.exists()
    return "ro&immutable=1" if lonely else "ro"


def _write_ahead(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")


def version(db: sqlite3.Connection) -> int:
    """Of the file's form; a file of an older one that is only read stays as it is, and lacks the newer tables."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def bring_up(db: sqlite3.Connection) -> None:
    """Give a file of an older version the tables that it lacks; inside of the transaction of the first write to it.

    Not before: a file that is opened and then refused still is one for the tare that wrote it. Nothing that is in it
    changes. When it was at work is estimated now, for segments of its own would hide that.
    """
    before = version(db)
    if before == FORMAT_VERSION:
        return
    for since, tables in UPGRADES.items():
        for statement in tables.split(";") if since > before else ():
            db.execute(statement)
    if before < SEGMENTS_SINCE:
        for segment in segments.estimate(db):
            segments.add(db, segment)
    db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def _require_ours(db: sqlite3.Connection, path: Path) -> None:
    identity = db.execute("PRAGMA application_id").fetchone()[0]
    if identity != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file, and not one of tare's", fix="name a file that `tare run -o` made")
    form = version(db)
    if form not in READABLE:
        writer, known = _writer(db), f"{READABLE[0]} to {READABLE[-1]}"
        raise StoreError(
            f"{path} has format version {form}, and tare {tare.__version__} reads versions {known}",
            fix=f"use tare {writer}, or a later one" if writer else "use the tare that wrote it",
        )
    said = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if said != "ok":
        raise StoreError(f"{path} is damaged: {' '.join(said.split())}", fix="take a copy that is whole")


def _busy(path: Path) -> StoreError:
    return StoreError(f"{path} is being written by another run", fix="wait for it to end, or stop it")
