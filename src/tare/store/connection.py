"""Opening of campaign files: intact files of tare's are opened, all others are reported and left unchanged."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import sqlite3
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import ClassVar, NamedTuple
from urllib.parse import quote

from pydantic import ValidationError

import tare
from tare.errors import StoreError, first_invalid
from tare.store import places, private_copy, shape
from tare.store.limits import MAX_RECORD_CHARS, Bounded
from tare.store.migrations import READABLE, bring_up, version
from tare.store.places import log_of
from tare.store.reading import known_part, may_be_newer
from tare.store.record import CampaignRecord
from tare.store.row_rules import BrokenError, UnknownError
from tare.store.schema import APPLICATION_ID, UNRELEASED_ID
from tare.timeouts import stretched, until

_BUSY_S = 10.0
_SPACE_LIMIT_S, _MIN_SPACE = 5.0, 64 << 10
#: The byte whose lock the writer of a rollback journal holds (https://sqlite.org/lockingv3.html), the form of Linux's
#: ``struct flock``, and bytes 18 and 19 of a file in WAL mode (https://sqlite.org/fileformat2.html).
_RESERVED_BYTE, _FLOCK, _WAL_MODE = (1 << 30) + 1, "hhqqi4x", b"\x02\x02"
#: Limit of characters shown of a version that a file names.
_MAX_VERSION_CHARS = 40
#: Limit of characters shown of SQLite's reason, which may quote the file.
_MAX_REASON_CHARS = 200
#: Meanings of SQLite's error codes, and what helps.
_TROUBLES = {
    sqlite3.SQLITE_FULL: (
        "cannot be written: its disk is full; what was measured until then is in it",
        "free space there, and continue it: tare run --resume {path}",
    ),
    sqlite3.SQLITE_BUSY: ("is locked by another program", "wait until that has ended, or end it"),
    sqlite3.SQLITE_READONLY: ("cannot be written", "see that you may write to it and to its folder"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "see that you may read it, and write to its folder"),
}


class Lock:
    """The right to write to a file: held by one process at a time, and released when the process ends.

    Raises `StoreError` if another process holds it, and for a file that another user could change.
    """

    #: Closing any descriptor of a file drops all POSIX locks of the process on it, including SQLite's. So a file that
    #: this process already writes is refused before it is opened a second time.
    _held: ClassVar[set[tuple[int, int]]] = set()

    def __init__(self, path: Path, *, new: bool = False) -> None:
        if not new and _identity(path.stat()) in self._held:
            raise _busy(path)
        self._path = path
        flags = os.O_CREAT | os.O_EXCL if new else os.O_NOFOLLOW | os.O_NONBLOCK
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o644)
        try:
            facts = os.fstat(self._fd)
            self._file, self._owner = _identity(facts), facts.st_uid
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not new and facts.st_uid not in _trusted():
                raise _of_another(path, facts.st_uid)
            self.require_side_files()
        except BaseException as error:
            os.close(self._fd)
            if isinstance(error, BlockingIOError):
                raise _busy(path) from None
            raise
        self._held.add(self._file)

    def release(self) -> None:
        """Release it. Call this after the connection is closed."""
        self._held.discard(self._file)
        os.close(self._fd)

    def remove(self) -> None:
        """Remove the file and SQLite's files beside it, unless the file was replaced."""
        with suppress(OSError):
            if _identity(self._path.lstat()) == self._file:
                for place in (self._path, *(beside for beside, _ in places.side_files(self._path))):
                    place.unlink()

    def require_side_files(self) -> None:
        """Raise `StoreError` if SQLite's files beside the file belong to another user."""
        places.require_side_files(self._path, self._owner)

    def fill(self, contents: bytes) -> None:
        """Write the initial contents of a new file."""
        with open(self._fd, "wb", closefd=False) as file:
            file.write(contents)
        os.fsync(self._fd)

    @contextmanager
    def no_rollback(self) -> Iterator[None]:
        """Keep SQLite from playing back a rollback journal within the context, even if one appears meanwhile.

        SQLite takes a journal for that of an active writer as long as another holder has the writer's lock. A lock of
        this descriptor counts as another holder's. Raises `StoreError` if another program is such a writer.
        """
        try:
            self._lock_reserved(fcntl.F_WRLCK)
        except BlockingIOError:
            raise _busy(self._path) from None
        except OSError as error:
            problem = f"{self._path} cannot be locked: {error.strerror}"
            raise StoreError(problem, fix="choose a place on a local file system") from error
        try:
            yield
        finally:
            self._lock_reserved(fcntl.F_UNLCK)

    def _lock_reserved(self, kind: int) -> None:
        words = struct.pack(_FLOCK, kind, os.SEEK_SET, _RESERVED_BYTE, 1, 0)
        fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, words)

    def connect(self) -> Bounded:
        """Open the file itself, and no replacement at its path. Raises `StoreError`."""
        before = self._descriptors()
        db = _connection(self._path, "rw")
        if self._descriptors() <= before:
            db.close()
            raise StoreError(f"{self._path} was replaced while it was opened", fix="take it into a folder of your own")
        return _limited(db, os.fstat(self._fd).st_size)

    def _descriptors(self) -> int:
        """Return the number of this process's descriptors of the file."""
        count = 0
        for entry in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # The listing itself uses a descriptor, which is closed by now.
                count += _identity(entry.stat()) == self._file
        return count


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino


def _trusted() -> set[int]:
    """Return the users whose files are trusted."""
    return {0, os.geteuid()}


def make(path: Path) -> tuple[Lock, Bounded]:
    """Create a file with the schema. Raises `StoreError` if ``path`` exists or cannot be created."""
    try:
        lock = Lock(path, new=True)
    except FileExistsError:
        raise StoreError(f"{path} exists", fix="choose another name with -o, or continue it: --resume") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be made: {error.strerror}", fix="choose another place with -o") from None
    with unmade(lock):
        try:
            lock.fill(_blank())
        except OSError as error:
            raise _unwritten(path, error.strerror or str(error)) from error
        with translated(path):
            db = lock.connect()
            try:
                _write_ahead(db, lock)
            except BaseException:
                db.close()
                raise
    return lock, db


@contextmanager
def unmade(lock: Lock) -> Iterator[None]:
    """If the block raises, release the right to a newly created file, and remove the file, which is empty."""
    try:
        yield
    except BaseException:
        lock.remove()
        lock.release()
        raise


def _blank() -> bytes:
    """Return the bytes of a file in WAL mode with our tables, as SQLite would make them by a rollback journal."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        bring_up(db)
        contents = bytearray(db.serialize())
    contents[18:20] = _WAL_MODE
    return bytes(contents)


class StoredRecord(NamedTuple):
    """The record in a file, and its fields that this tare does not know (they stay in the file)."""

    record: CampaignRecord
    text: str  # The record's text, exactly as in the file.
    unknown: tuple[str, ...] = ()


def attach(path: Path) -> tuple[Lock, Bounded, StoredRecord]:
    """Open an existing file for writing. Raises `StoreError`."""
    place = places.real(path)
    try:
        lock = Lock(place)
    except OSError as error:
        fix = "see that you may write to it, or take a copy of your own"
        raise StoreError(f"{path} cannot be written: {error.strerror}", fix=fix) from error
    with _released(lock):
        return lock, *_attached(path, lock)


def _attached(path: Path, lock: Lock) -> tuple[Bounded, StoredRecord]:
    with lock.no_rollback():
        db, stored = _admit(path, lock.connect)
    try:
        with translated(path):
            _write_ahead(db, lock)
    except BaseException:
        db.close()
        raise
    return db, stored


@contextmanager
def _released(lock: Lock) -> Iterator[None]:
    """Release a lock if the block raises."""
    try:
        yield
    except BaseException:
        lock.release()
        raise


def view(path: Path) -> tuple[Bounded, StoredRecord]:
    """Open an existing file for reading, also beside a writer. Raises `StoreError`.

    A file that another user may change is read without any file beside it, or from a private copy with its log. So is a
    file on a medium where SQLite cannot create its index.
    """
    with _reached(path):
        place = places.real(path)
        if os.access(place.parent, os.W_OK) and _is_ours(place):
            return _admit(path, lambda: _connect(place, "ro"))
        if not log_of(place).exists():
            return _admit(path, lambda: _connect(place, "ro&immutable=1"))
        with private_copy.copied(place) as copy:
            # After its first read, SQLite has all files open and no longer needs their names.
            return _admit(path, lambda: _connect(copy, "ro"))


@contextmanager
def _reached(path: Path) -> Iterator[None]:
    """Convert the system's errors to `StoreError`."""
    try:
        yield
    except OSError as error:
        fix = "see that you may read it, or take a copy of your own"
        raise StoreError(f"{path} cannot be read: {error.strerror or error}", fix=fix) from error


def _is_ours(place: Path) -> bool:
    """Return True if only root and this user can have changed a file or SQLite's files beside it."""
    every = [place.stat(), *(facts for _, facts in places.side_files(place))]
    return {facts.st_uid for facts in every} <= _trusted()


def _admit(path: Path, connect: Callable[[], Bounded]) -> tuple[Bounded, StoredRecord]:
    """Open and check a file. Close it again if it is refused."""
    with translated(path):
        db = connect()
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
    """Return the error of an invalid record: damaged if this tare wrote it, otherwise perhaps a newer tare's."""
    if writer is None or (writer == tare.__version__ and not may_be_newer(error)):
        return StoreError(f"{path} is damaged: its record is not valid: {first_invalid(error)}")
    return StoreError(
        f"{path}: tare {writer} wrote its record, and tare {tare.__version__} does not know it: {first_invalid(error)}",
        fix=f"use tare {writer}, or a later one",
    )


def _writer(db: sqlite3.Connection) -> str | None:
    """Return the version of tare that made the file, or None if it is not recorded."""
    with suppress(sqlite3.Error, ValueError, RecursionError):
        record = json.loads(fact(db, "record") or "") if shape.has_facts(db) else None
        writer = record.get("tare_version") if isinstance(record, dict) else None
        return writer[:_MAX_VERSION_CHARS] if isinstance(writer, str) else None
    return None


def await_space(path: Path) -> None:
    """Wait some seconds if the disk is full: an instance that has just filled it is about to lose its files."""
    deadline = until(_SPACE_LIMIT_S)
    while time.monotonic() < deadline and _is_full(path):
        time.sleep(0.05)


def _is_full(path: Path) -> bool:
    try:
        at = os.statvfs(path.parent)
    except FileNotFoundError as error:  # what is written to a file without a name is lost
        raise StoreError(f"the folder of {path} is gone", fix="measure again, into a folder that stays") from error
    return at.f_bavail * at.f_frsize < _MIN_SPACE


def fact(db: sqlite3.Connection, name: str) -> str | None:
    """Return the fact of this name in the file, or None if it is missing or not text."""
    row = db.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
    return row[0] if row is not None and isinstance(row[0], str) else None


def fold(db: sqlite3.Connection) -> None:
    """Move the log into the file. A current reader keeps the file in WAL mode, which loses nothing.

    No rollback journal is used: a kill would leave it behind, and SQLite would obey it. The write is a few bytes of one
    sector.
    """
    with suppress(sqlite3.OperationalError):
        db.execute("PRAGMA busy_timeout = 500")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode = OFF")


@contextmanager
def translated(path: Path, db: Bounded | None = None) -> Iterator[None]:
    """Raise `StoreError` in place of SQLite's errors within the context.

    ``db``: the connection that runs the statements. Raises `KeyboardInterrupt` if a signal ended a statement.
    """
    try:
        yield
    except UnknownError as error:
        fix = "read it with the version of tare that wrote it, or take a copy that is whole"
        raise StoreError(f"{path}: {error}", fix=fix) from error
    except BrokenError as error:
        raise _damaged(path, str(error)) from error
    except UnicodeDecodeError as error:  # An error of SQLite's own that quotes the file may cause this.
        raise _damaged(path, "it has text that is not UTF-8") from error
    except sqlite3.Error as error:
        raise _in_words(path, error, db) from error


def _in_words(path: Path, error: sqlite3.Error, db: Bounded | None) -> BaseException:
    """Convert an error of SQLite's to one for the user, by its code."""
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_INTERRUPT:
        ended = db is not None and db.timed_out
        return StoreError(f"{path}: reading it takes too long for its size") if ended else KeyboardInterrupt()
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:  # The journal appeared after the check by `places.require_file`.
        return places.has_journal(places.real(path))
    if code == sqlite3.SQLITE_NOTADB:
        return StoreError(f"{path} is not a campaign file: it is not SQLite", fix="name a file that `tare run -o` made")
    # Errors that Python itself finds in a column have no code: for example text that is not UTF-8.
    if not isinstance(error, sqlite3.OperationalError) or code in {None, sqlite3.SQLITE_ERROR}:
        return _damaged(path, str(error))
    if _is_full(path):
        code = sqlite3.SQLITE_FULL  # SQLite reports a failed enlargement of the file as an I/O error of the disk.
    problem, fix = _TROUBLES.get(code & 0xFF, (f"cannot be used: {error}", "see that its disk is sound, and has space"))
    return StoreError(f"{path} {problem}", fix=fix.format(path=shlex.quote(str(path))))


def _unwritten(path: Path, why: str) -> StoreError:
    return StoreError(f"{path} cannot be made: {why}", fix="free space there, or choose another place with -o")


def _damaged(path: Path, why: str) -> StoreError:
    return StoreError(
        f"{path} is damaged: {' '.join(why.split())[:_MAX_REASON_CHARS]}", fix="take a copy that is whole"
    )


def _connect(place: Path, mode: str) -> Bounded:
    return _limited(_connection(place, mode), place.stat().st_size)


def _connection(place: Path, mode: str) -> Bounded:
    """Return a connection that has not read anything yet."""
    uri = f"file:{quote(os.fsencode(place.absolute()))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=stretched(_BUSY_S), isolation_level=None, factory=Bounded)


def _limited(db: Bounded, file_bytes: int) -> Bounded:
    try:
        db.bound(file_bytes)
    except BaseException:
        db.close()
        raise
    return db


def _write_ahead(db: sqlite3.Connection, lock: Lock) -> None:
    """Keep writes in a log. Raises `StoreError` if that is not possible here."""
    with lock.no_rollback():
        if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            db.execute("PRAGMA journal_mode = OFF")  # The change creates no journal, and obeys none.
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    with lock.no_rollback():
        # Opens the log, after which SQLite looks for no journal.
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if mode != "wal":
        raise StoreError(f"SQLite keeps no log here ({mode})", fix="choose a place on another file system")
    lock.require_side_files()
    db.execute("PRAGMA synchronous = FULL")


def _require_ours(db: sqlite3.Connection, path: Path) -> None:
    identity = db.execute("PRAGMA application_id").fetchone()[0]
    if identity == UNRELEASED_ID:
        what = f"{path} has format version {version(db)} of before tare 0.1.0, which this tare does not read"
        raise StoreError(what, fix="read it with the tare that wrote it, or measure again")
    if identity != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file, and not one of tare's", fix="name a file that `tare run -o` made")
    form = version(db)
    if form == 0:
        raise _cut_off(path)
    if form not in READABLE:
        writer, newest = _writer(db), READABLE[-1]
        raise StoreError(
            f"{path} has format version {form}, and the newest that tare {tare.__version__} reads is {newest}",
            fix=f"use tare {writer}, or a later one" if writer else "use the tare that wrote it",
        )
    if (strange := shape.foreign(db, form)) is not None:
        raise StoreError(f"{path} is not as tare writes it: {strange}", fix="take a copy that is as tare wrote it")
    answer = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if answer != "ok":
        raise StoreError(f"{path} is damaged: {' '.join(answer.split())}", fix="take a copy that is whole")


def _cut_off(path: Path) -> StoreError:
    return StoreError(f"{path} holds no campaign: it was cut off while it was made", fix="remove it and run again")


def _of_another(path: Path, user: int) -> StoreError:
    return StoreError(
        f"{path} belongs to user {user}, who could change it while it is written",
        fix="copy it, and its -wal where there is one, and name the copy",
    )


def _busy(path: Path) -> StoreError:
    return StoreError(f"{path} is being written by another run", fix="wait for it to end, or stop it")
