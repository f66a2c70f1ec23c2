"""Byte streams below a session, each made by a platform.

A stream waits for its other end only in `ByteStream.send`, and only until the given deadline. The session decides in
one place (`Session.pump_until`) how long anything may take.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from tare.errors import SessionError


class ByteStream(Protocol):
    """A two-way byte stream to an agent. One reader and one writer; not thread-safe."""

    def fileno(self) -> int:
        """Return a descriptor that polls readable when there is input to `receive`."""
        ...

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of ``data`` by the deadline, a time of `time.monotonic`.

        Raises `SessionError` if the other end is gone or has not taken all of it by the deadline.
        """
        ...

    def receive(self, limit: int) -> bytes | None:
        """Read available input, at most ``limit`` bytes; b"" at the end, None if there is none. Never waits."""
        ...

    def close(self) -> None:
        """Close both directions. May be called twice."""
        ...


class PipeStream:
    """Two descriptors, one for each direction, which the stream owns. A terminal or a device uses the same for both."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._write = partial(os.write, write_fd)
        self._open = True
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    def fileno(self) -> int:
        """Return the descriptor to read from."""
        return self._read_fd

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of ``data``; see `ByteStream.send`."""
        _send(self._write_fd, self._write, data, deadline)

    def receive(self, limit: int) -> bytes | None:
        """Read available input; see `ByteStream.receive`."""
        try:
            return os.read(self._read_fd, limit)
        except BlockingIOError:
            return None
        except OSError:
            return b""  # A terminal or device reports the loss of its other end by an error.

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
        """Return the socket's descriptor."""
        return self._socket.fileno()

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of ``data``; see `ByteStream.send`."""
        _send(self._socket.fileno(), self._socket.send, data, deadline)

    def receive(self, limit: int) -> bytes | None:
        """Read available input; see `ByteStream.receive`."""
        try:
            return self._socket.recv(limit)
        except BlockingIOError:
            return None
        except OSError:
            return b""  # The other end reset the connection, so no input follows.

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _send(fd: int, write: Callable[[memoryview | bytes], int], data: bytes, deadline: float) -> None:
    """Write all of ``data``. The deadline applies to the whole write, even if the other end takes it bit by bit."""
    unsent: memoryview | bytes = data
    began = None
    while unsent:
        try:
            written = write(unsent)
            unsent = memoryview(unsent)[written:] if written < len(unsent) else b""
        except BlockingIOError:
            now = time.monotonic()
            began = began or now
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            if now >= deadline or not poll.poll((deadline - now) * 1000):
                message = f"the sandbox did not take what was sent to it within {max(0.0, deadline - began):.3g} s"
                raise SessionError(message) from None
        except OSError as error:
            raise SessionError(f"the sandbox takes nothing any more ({error.strerror})") from error
