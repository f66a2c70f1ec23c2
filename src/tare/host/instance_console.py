"""Output of a sandbox outside of its stream (a guest's console, a monitor's messages). A file keeps the end of it.

A sandbox never gets that file: it gets a pipe, and one thread reads all pipes. So a sandbox that floods its console
fills neither the disk nor memory, and waits for its own pipe. A silent sandbox costs nothing.

If only a path can be passed (a daemon opens it), the file's size is watched, and its blocks are freed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import threading
import time
from collections.abc import Iterator
from pathlib import Path

#: Limit in bytes that is kept of a console: its end.
CAP = 1 << 20
#: First line of a record whose beginning was dropped.
CUT = b"[console cut at 1 MiB]\n"
#: Each pipe is read once a turn, which limits the rate to 6.4 MB/s, however much is printed.
TURN_S = 0.01
WATCH_INTERVAL_S = 0.5
_PIECE = 65_536
#: fallocate(2): free the blocks, and keep the size.
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


class _Collector:
    """Reader of all pipes, in a thread that sleeps while nothing is printed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[int, Path] = {}  # By the pipe's descriptor.
        self._watched: set[Path] = set()
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        threading.Thread(target=self._run, name="consoles", daemon=True).start()

    def add(self, pipe: int, file: Path) -> None:
        """Read a pipe into the file, and close the pipe at its end."""
        os.set_blocking(pipe, False)
        with self._lock:
            self._files[pipe] = file
            self._epoll.register(pipe, select.EPOLLIN)

    def watch(self, file: Path) -> None:
        """Watch a file's size for as long as the file exists."""
        with self._lock:
            self._watched.add(file)
        os.eventfd_write(self._wake, 1)

    def drain(self, file: Path) -> None:
        """Read the available data of a console's pipes now, at most the limit that is kept."""
        with self._lock:
            for pipe in [pipe for pipe, into in self._files.items() if into == file]:
                for _ in range(CAP // _PIECE):
                    if not self._take(pipe):
                        break

    def _run(self) -> None:
        while True:
            ready = [pipe for pipe, _ in self._epoll.poll(WATCH_INTERVAL_S if self._watched else None)]
            with self._lock:
                for pipe in ready:
                    self._take(pipe)
                for file in tuple(self._watched):
                    self._shrink(file)
            if self._wake in ready:
                os.eventfd_read(self._wake)
            if ready:
                time.sleep(TURN_S)

    def _take(self, pipe: int) -> bool:
        """Move one piece into the file. Return False if there was none."""
        if pipe not in self._files:  # Another thread has seen its end meanwhile.
            return False
        try:
            piece = os.read(pipe, _PIECE)
        except BlockingIOError:
            return False
        if piece:
            _append(self._files[pipe], piece)
            return True
        del self._files[pipe]
        self._epoll.unregister(pipe)
        os.close(pipe)
        return False

    def _shrink(self, file: Path) -> None:
        try:
            status = file.stat()
            if status.st_blocks * 512 > 2 * CAP:
                _give_back(file, status.st_size - CAP)
        except OSError:  # It was removed with its instance.
            self._watched.discard(file)


_made = threading.Lock()
_collectors: list[_Collector] = []


def _collector() -> _Collector:
    with _made:
        if not _collectors:
            _collectors.append(_Collector())
        return _collectors[0]


@contextlib.contextmanager
def opened(file: Path) -> Iterator[int]:
    """Yield the writing end of a pipe, closed with the context; writes to it are appended to the file.

    The file is created, and never takes much more than 2 MiB on the disk, however much is written.
    """
    file.touch()
    ours, theirs = os.pipe()
    try:
        _collector().add(ours, file)
        yield theirs
    finally:
        os.close(theirs)


def watch(file: Path) -> None:
    """Free the blocks of a file that others write to, except the last part, for as long as the file exists.

    It runs twice a second. That suffices for a serial line with the guest as its only writer, but not for writes at a
    disk's speed.
    """
    file.touch()
    _collector().watch(file)


def read(file: Path) -> bytes:
    """Return the end of the output so far, at most `CAP` bytes, with `CUT` before it if more was printed."""
    if _collectors:
        _collectors[0].drain(file)
    try:
        with file.open("rb") as console:
            size = os.fstat(console.fileno()).st_size
            console.seek(max(0, size - CAP))
            return (CUT if size > CAP else b"") + console.read(CAP).removeprefix(CUT)
    except OSError:
        return b""


class Follower:
    """Reader of new console output, each byte once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._place = 0

    def more(self) -> bytes:
        """Return the output since the last call, or all that remains of a file that was cut meanwhile; b"" if none."""
        if _collectors:
            _collectors[0].drain(self._file)
        with self._file.open("rb") as console:
            size = os.fstat(console.fileno()).st_size
            if size < self._place:
                self._place = 0
            begin = console.seek(max(self._place, size - CAP))
            new = console.read(CAP)
            self._place = begin + len(new)  # The size may already be larger if more is printed meanwhile.
            return new


def _append(file: Path, piece: bytes) -> None:
    """Append to a file. Once it is twice as long as the limit, keep only its end."""
    # The file was removed with its instance, or the disk is full.
    with contextlib.suppress(OSError), file.open("r+b") as console:
        end = console.seek(0, os.SEEK_END)
        if end + len(piece) > 2 * CAP:
            console.seek(-CAP, os.SEEK_END)
            tail = console.read()
            console.truncate(0)
            console.seek(0)
            console.write(CUT + tail)
        console.write(piece)


def _give_back(file: Path, length: int) -> None:
    call = ctypes.CDLL(None, use_errno=True).fallocate
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong)
    with file.open("r+b") as console:
        if call(console.fileno(), _KEEP_SIZE | _PUNCH_HOLE, 0, length) != 0:
            raise OSError(ctypes.get_errno(), "no holes can be made in this file")
