"""Standard output and error: data is written whole or the command fails, and messages never end the work.

Python's own streams lose what a non-blocking descriptor refuses (a sibling process can make a shared pipe so), and
raise in the middle of the work when the reader of the progress goes away. These write to the same descriptors.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from tare.cli.exit_codes import ExitCode
from tare.timeouts import stretched

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

OUT, ERR = 1, 2
#: Seconds that messages wait for a reader that does not read; then they are dropped until it reads again.
PATIENCE_S = 5.0
#: A pipe or terminal that has room takes this many bytes without waiting (PIPE_BUF).
_PIECE = 4096


class OutputError(Exception):
    """A stream did not take the data that a command had to write."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror)
        self.reason = cause.strerror or type(cause).__name__
        self.reader_left = cause.errno == errno.EPIPE
        self.device_failed = cause.errno == errno.EIO  # so does a terminal that hangs up

    @property
    def code(self) -> ExitCode:
        """The exit code of a command whose output is not whole."""
        return ExitCode.CLOSED if self.reader_left else ExitCode.UNWRITTEN


class DataStream(io.FileIO):
    """A descriptor that takes all data, however long that takes. After an error it takes nothing more."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.error: OutputError | None = None

    def write(self, data: ReadableBuffer) -> int:
        """Write all bytes and return their number. Raises `OutputError` once; later data is dropped."""
        left = memoryview(data).cast("B")
        while left and self.error is None:
            try:
                written = super().write(left)
            except OSError as error:
                self.error = OutputError(error)
                raise self.error from error
            left = left[written or 0 :]
            if written is None:
                _wait_for_room(self.fileno(), None)
        return memoryview(data).nbytes


class MessageStream(io.FileIO):
    """A descriptor for messages: what it does not take is dropped, and nothing is raised."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.lost = ""  # why messages were dropped
        self._stalled = False

    def write(self, data: ReadableBuffer) -> int:
        """Write what the descriptor takes, and return the number of all bytes."""
        left = memoryview(data).cast("B")
        while left:
            if not _wait_for_room(self.fileno(), 0.0 if self._stalled else PATIENCE_S):
                self._stalled, self.lost = True, "their reader did not read"
                break
            self._stalled = False
            try:
                left = left[super().write(left[:_PIECE]) or 0 :]
            except OSError as error:
                self.lost = error.strerror or "they could not be written"
                break
        return memoryview(data).nbytes


def _wait_for_room(descriptor: int, limit_s: float | None) -> bool:
    """Wait until the descriptor takes data or fails, for at most ``limit_s`` seconds; return whether it does."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(None if limit_s is None else stretched(limit_s) * 1000))


@dataclass(frozen=True, slots=True)
class Streams:
    """The process's two output streams while a command runs; None for one that a caller has replaced."""

    out: DataStream | None
    err: MessageStream | None

    def flush(self) -> OutputError | None:
        """Write what is still buffered, and return the error by which standard output is not whole, or None."""
        try:
            sys.stdout.flush()
        except OutputError as error:
            return error
        finally:
            sys.stderr.flush()
        return None if self.out is None else self.out.error


def take_over() -> Streams:
    """Replace standard output and error. Standard output that was closed fails on the first write."""
    _open_closed()
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    out = DataStream(OUT) if _is_own(sys.stdout, OUT) else None
    err = MessageStream(ERR) if _is_own(sys.stderr, ERR) else None
    if out is not None:
        sys.stdout = _text(out, sys.stdout, lines=out.isatty())
    if err is not None:
        sys.stderr = _text(err, sys.stderr, lines=True)
    return Streams(out, err)


def write_whole(stream: TextIO, data: bytes) -> None:
    """Write bytes to a standard stream, all of them. Raises `OutputError`."""
    stream.flush()
    raw = getattr(stream.buffer, "raw", None)
    if isinstance(raw, MessageStream):
        DataStream(raw.fileno()).write(data)
    else:
        stream.buffer.write(data)
        stream.buffer.flush()


def _open_closed() -> None:
    """Keep the numbers 0 to 2 from being given to the next file that is opened: what is printed would go into it."""
    for descriptor in (0, OUT, ERR):
        try:
            os.fstat(descriptor)
        except OSError:  # a descriptor for reading refuses what is written to it
            opened = os.open(os.devnull, os.O_RDONLY)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)


def _is_own(stream: object, descriptor: int) -> bool:
    """Return whether the stream is Python's own on this descriptor, and not a caller's in its place."""
    if stream is None:
        return True
    try:
        return isinstance(stream, io.TextIOWrapper) and stream.fileno() == descriptor
    except (OSError, ValueError):
        return False


def _text(raw: io.FileIO, before: TextIO | None, *, lines: bool) -> io.TextIOWrapper:
    """A text stream on the raw one, which escapes the characters that its encoding lacks."""
    if before is not None:
        before.flush()
    encoding = before.encoding if before is not None else "utf-8"
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors="backslashreplace", line_buffering=lines)


def is_read_on_a_terminal() -> bool:
    """Return True if standard output is a terminal, and not a pipe or a file."""
    return sys.stdout is not None and sys.stdout.isatty()
