"""The byte streams that a session runs over: what a platform hands to it."""

from __future__ import annotations

import os
import select
import socket
import time
from typing import Protocol

from tare.errors import SessionError
from tare.patience import stretched, until

#: how long the other end may take for what is sent at once, in seconds
SEND_LIMIT_S = 10.0


class ByteStream(Protocol):
    """A two-way byte stream to an agent. One reader and one writer; not thread-safe."""

    def fileno(self) -> int:
        """A descriptor that polls readable when `receive` would not block."""
        ...

    def send(self, data: bytes) -> None:
        """Write all of ``data``. Raises `SessionError` when the other end is gone or has not taken it within 10 s."""
        ...

    def receive(self, limit: int) -> bytes:
        """Read what is there, at most ``limit`` bytes; b"" at the end. Blocks only when nothing is there."""
        ...

    def close(self) -> None:
        """Close both ways. May be called twice."""
        ...


class PipeStream:
    """Two descriptors, one a way; the stream owns them (both may be the same, of a terminal or a device)."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._open = True
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    def fileno(self) -> int:
        """The descriptor to read from."""
        return self._read_fd

    def send(self, data: bytes) -> None:
        """Write all of ``data``; see `ByteStream.send`."""
        deadline = until(SEND_LIMIT_S)
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._write_fd, left) :]
            except BlockingIOError:
                _wait(self._write_fd, select.POLLOUT, deadline)
            except OSError as error:
                raise _gone(error) from error

    def receive(self, limit: int) -> bytes:
        """Read what is there; see `ByteStream.receive`."""
        while True:
            try:
                return os.read(self._read_fd, limit)
            except BlockingIOError:
                _wait(self._read_fd, select.POLLIN, None)
            except OSError:
                return b""  # a terminal or device whose other end is gone says so by an error

    def close(self) -> None:
        """Close both descriptors."""
        if self._open:
            self._open = False
            for fd in {self._read_fd, self._write_fd}:
                os.close(fd)


class SocketStream:
    """A connected stream socket, which the stream owns."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        connection.setblocking(False)

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    def send(self, data: bytes) -> None:
        """Write all of ``data``; see `ByteStream.send`."""
        deadline = until(SEND_LIMIT_S)
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                _wait(self._socket.fileno(), select.POLLOUT, deadline)
            except OSError as error:
                raise _gone(error) from error

    def receive(self, limit: int) -> bytes:
        """Read what is there; see `ByteStream.receive`."""
        while True:
            try:
                return self._socket.recv(limit)
            except BlockingIOError:
                _wait(self._socket.fileno(), select.POLLIN, None)
            except OSError:
                return b""  # reset by the other end: nothing more will come

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _wait(fd: int, event: int, deadline: float | None) -> None:
    """Wait until the descriptor is ready; raises `SessionError` at the deadline (of `time.monotonic`)."""
    poll = select.poll()
    poll.register(fd, event)
    left_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
    if not poll.poll(left_ms):
        raise SessionError(f"the sandbox did not take what was sent to it within {stretched(SEND_LIMIT_S):.0f} s")


def _gone(error: OSError) -> SessionError:
    return SessionError(f"the sandbox takes nothing any more ({error.strerror})")
