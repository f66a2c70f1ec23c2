"""Copy of another user's file with its log, in a place that no other user can reach.

The owner's later changes to the file, or to files beside it, then have no effect. Without a copy, SQLite would map the
index into memory and trust its positions in the log: an owner who truncates the index kills the reader.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tare.errors import StoreError
from tare.store.places import log_of

#: A running campaign moves its log into the file every few MiB. The copy is repeated if that happened meanwhile.
_TRIES = 20
#: Possible delay of a filesystem's clock, in seconds: a second change within this time may leave the time of change as
#: is.
_CLOCK_TICK_S = 0.05
_PIECE = 1 << 20
#: Bytes of a log's header, which changes when the log restarts.
_LOG_HEADER = 32


@contextlib.contextmanager
def copied(file: Path) -> Iterator[Path]:
    """Yield a copy of a file and its log, as they were at one moment. It is removed at the end of the context.

    Raises `OSError`, and `StoreError` if there is no room or the file keeps changing.
    """
    with tempfile.TemporaryDirectory(prefix="tare-") as folder, contextlib.ExitStack() as stack:
        copy = Path(folder, file.name)
        source = stack.enter_context(_opened(file))
        for _ in range(_TRIES):
            before = _settled(source)
            with _opened(log_of(file)) as log:
                _require_room(file, before.st_size + os.fstat(log).st_size, folder)
                header = os.pread(log, _LOG_HEADER, 0)
                _take(source, copy)
                _take(log, log_of(copy))
                if _same(before, os.fstat(source)) and header == os.pread(log, _LOG_HEADER, 0):
                    break
        else:
            raise StoreError(f"{file} is being written too fast to be copied", fix="wait until that run has ended")
        yield copy


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[int]:
    """Yield a descriptor of a plain file. A replacement of the file is neither followed nor waited for."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StoreError(f"{file} is not a file", fix="take a copy that is whole")
        yield descriptor
    finally:
        os.close(descriptor)


def _settled(source: int) -> os.stat_result:
    """Return the status of a file once its last change is so old that a further change would show."""
    while True:
        facts = os.fstat(source)
        if not 0 <= time.time_ns() - facts.st_mtime_ns < _CLOCK_TICK_S * 1e9:
            return facts
        time.sleep(_CLOCK_TICK_S)


def _same(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )


def _take(source: int, target: Path) -> None:
    place = 0
    with target.open("wb") as file:
        while piece := os.pread(source, _PIECE, place):
            file.write(piece)
            place += len(piece)


def _require_room(file: Path, size: int, folder: str) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise StoreError(
            f"{file} belongs to another user, and a copy to read has no room: it has {size >> 20} MiB,"
            f" {Path(folder).parent} has {free >> 20} MiB",
            fix="set TMPDIR to a folder on a larger disk",
        )
