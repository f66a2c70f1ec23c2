"""The files of campaigns, and SQLite's files beside them. Loads quickly, for commands that only check."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from tare.errors import StoreError, UsageError

#: Files that SQLite keeps or looks for beside a database. It takes any file with such a name for its own.
_LOG, _INDEX, _JOURNAL = "-wal", "-shm", "-journal"
_SQLITE_ENDINGS = (_LOG, _INDEX, _JOURNAL)
#: Bytes of a log: SQLite reads all of it before anything else. tare moves its log into the file every few MiB.
MAX_LOG_BYTES = 1 << 30
#: The kernel's limit.
_MAX_LINKS = 40
#: A location that is not a file's: a `Path` shows a database server's URL with a single slash.
_SERVER = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)")


def server_of(location: Path | str) -> tuple[str, str] | None:
    """Return the scheme of a location ``SCHEME:/...`` and the rest; None if the location is a file's."""
    server = _SERVER.fullmatch(str(location))
    return (server[1], server[2]) if server is not None and not Path(f"{server[1]}:").is_dir() else None


def real(file: Path) -> Path:
    """Return the real path of a file, as SQLite determines it: its other files are beside this, not beside a link.

    Links are followed as the kernel does under ``fs.protected_symlinks``, which resolving them here would bypass: a
    link that another user put into a world-writable folder is not followed. Raises `OSError`.
    """
    path = file.absolute()
    for _ in range(_MAX_LINKS):
        link = next((part for part in (*reversed(path.parents), path) if part.is_symlink()), None)
        if link is None:
            return Path(os.path.realpath(path))
        refuse_planted(link)
        path = link.parent / link.readlink() / path.relative_to(link)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def refuse_planted(place: Path) -> None:
    """Raise `PermissionError` if another user owns this file in a folder where everybody may create files."""
    facts, folder = place.lstat(), place.parent.stat()
    if folder.st_mode & stat.S_IWOTH and facts.st_uid not in {os.geteuid(), 0, folder.st_uid}:
        problem = f"{place} belongs to user {facts.st_uid}, in a folder that everybody may write to"
        raise PermissionError(errno.EACCES, problem)


def require_file(location: Path | str) -> Path:
    """Return the file at a location, which exists, without files beside it that SQLite must not touch.

    A pipe or a device is refused, because opening it may never end. Raises `StoreError`, and `UsageError` if the host
    does not permit the check.
    """
    file, fix = Path(location), "name a file that `tare run -o` made"
    try:
        if not file.exists():
            raise StoreError(f"{file} does not exist", fix=fix)
        if not file.is_file():
            raise StoreError(f"{file} is not a file", fix=fix)
        place = real(file)
        require_side_files(place)
        require_no_journal(place)
    except OSError as error:
        fix = "see to that, or choose another place"
        raise UsageError(f"{file} cannot be read: {error.strerror or error}", fix=fix) from error
    return file


def require_side_files(file: Path, owner: int | None = None) -> None:
    """Raise `StoreError` unless a file's log and its index are plain files without another name.

    SQLite truncates or overwrites such files. ``owner``: the only user who may own them.
    """
    for place, facts in side_files(file):
        if not stat.S_ISREG(facts.st_mode):
            wrong = "is not a file"
        elif facts.st_nlink > 1:
            wrong = "has another name as well"
        elif facts.st_size > MAX_LOG_BYTES:
            wrong = f"has more than the {MAX_LOG_BYTES >> 30} GiB that are read of it"
        elif owner is not None and facts.st_uid != owner:
            wrong = f"belongs to another user than {file.name}"
        else:
            continue
        fix = "remove it, or take the file elsewhere"
        raise StoreError(f"{place} {wrong}, and SQLite would open it with {file.name}", fix=fix)


def require_no_journal(file: Path) -> None:
    """Raise `StoreError` if a rollback journal is beside a file.

    SQLite would obey it: undo the writes that it calls unfinished, and then remove the file that it names, whichever
    that is.
    """
    if os.path.lexists(file.with_name(file.name + _JOURNAL)):
        raise has_journal(file)


def has_journal(file: Path) -> StoreError:
    """Return the error of a file with a rollback journal."""
    journal = file.with_name(file.name + _JOURNAL)
    return StoreError(
        f"{journal} is there, and tare never makes one: SQLite would change {file.name} by it, and may remove any"
        " file of this host that it names",
        fix=f"rm {shlex.quote(str(journal))}; only if you know that a program of yours wrote to {file.name} and was"
        f" killed: sqlite3 {shlex.quote(str(file))} 'PRAGMA quick_check', which takes it in",
    )


def side_files(file: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield a file's log and its index, as far as they exist, with their status."""
    for ending in (_LOG, _INDEX):
        place = file.with_name(file.name + ending)
        with contextlib.suppress(FileNotFoundError):
            yield place, place.lstat()


def log_of(file: Path) -> Path:
    """Return the place of a file's log, where committed data wait to be moved into the file."""
    return file.with_name(file.name + _LOG)


def sqlite_files(file: Path) -> list[Path]:
    """Return the places that SQLite takes for its own if such a database exists."""
    return [file.with_name(file.name + ending) for ending in _SQLITE_ENDINGS]


def database_of(place: Path) -> Path | None:
    """Return the existing database to which this place belongs, or None."""
    for ending in _SQLITE_ENDINGS:
        database = place.with_name(place.name.removesuffix(ending) or place.name)
        if place.name.endswith(ending) and database != place and database.exists():
            return database
    return None
