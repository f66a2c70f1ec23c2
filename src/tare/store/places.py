"""The files of campaigns, and what SQLite has beside one. Loads quickly, for commands that only ask."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from tare.errors import StoreError, UsageError

#: Files that SQLite keeps beside a database, or looks for there: whatever else is in their place is taken for its log.
_LOG = "-wal"
_SQLITE_ENDINGS = (_LOG, "-shm", "-journal")
#: A location that is no file's, as a `Path` leaves that of a database server: with one slash.
_SERVER = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)")


def server_of(location: Path | str) -> tuple[str, str] | None:
    """The scheme of a location ``SCHEME:/...`` and what follows it; None: the location is a file's."""
    server = _SERVER.fullmatch(str(location))
    return (server[1], server[2]) if server is not None and not Path(f"{server[1]}:").is_dir() else None


def require_file(location: Path | str) -> Path:
    """The file at a location, which is there. A pipe or a device is none: opening it may never end.

    Raises `StoreError`, and `UsageError` where the host does not let one look.
    """
    file, fix = Path(location), "name a file that `tare run -o` made"
    try:
        if not file.exists():
            raise StoreError(f"{file} does not exist", fix=fix)
        if not file.is_file():
            raise StoreError(f"{file} is not a file", fix=fix)
        for side_file in sqlite_files(
            Path(os.path.realpath(file))
        ):  # of a loop of links Path.resolve raises what is no OSError
            if os.path.lexists(side_file) and not stat.S_ISREG(side_file.lstat().st_mode):
                raise StoreError(
                    f"{side_file} is not a file, and SQLite would open it with {file.name}",
                    fix="remove it, or take the file elsewhere",
                )
    except OSError as error:
        fix = "see to that, or choose another place"
        raise UsageError(f"{file} cannot be read: {error.strerror or error}", fix=fix) from error
    return file


def log_of(file: Path) -> Path:
    """Where what is committed waits to be taken into the file."""
    return file.with_name(file.name + _LOG)


def sqlite_files(file: Path) -> list[Path]:
    """The places that SQLite takes for its own as soon as there is such a database."""
    return [file.with_name(file.name + ending) for ending in _SQLITE_ENDINGS]


def database_of(place: Path) -> Path | None:
    """The database that is there and takes this place for its own; None: there is none."""
    for ending in _SQLITE_ENDINGS:
        database = place.with_name(place.name.removesuffix(ending) or place.name)
        if place.name.endswith(ending) and database != place and database.exists():
            return database
    return None
