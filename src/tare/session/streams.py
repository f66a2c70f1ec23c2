"""The byte streams that a session runs over, each made by a platform.

A stream never waits for its other end but in `ByteStream.send`, and there until the given deadline: the session decides
how long anything may take, in one place (`Session.pump_until`).
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
        """A descriptor that polls readable when there is something to `receive`."""
        ...

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of ``data`` by the deadline, an instant of `time.monotonic`.

        Raises `SessionError` when the other end is gone or has not taken all of it by then.
        """
        ...

    def receive(self, limit: int) -> bytes | None:
        """Read what is there, at most ``limit`` bytes; b"" at the end, None when there is nothing. Never waits."""
        ...

    def close(self) -> None:
        """Close both ways. May be called twice."""
        ...


class PipeStream:
    """Two descriptors, one a way; the stream owns them (both may be the same, of a terminal or a device)."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._write = partial(os.write, write_fd)
        self._open = True
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)

    def fileno(self) -> int:
        """The descriptor to read from."""
        return self._read_fd

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of ``data``; see `ByteStream.send`."""
        _send(self._write_fd, self._write, data, deadline)

    def receive(self, limit: int) -> bytes | None:
        """Read what is there; see `ByteStream.receive`."""
        try:
            return os.read(self._read_fd, limit)
        except BlockingIOError:
            return None
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

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of ``data``; see `ByteStream.send`."""
        _send(self._socket.fileno(), self._socket.send, data, deadline)

    def receive(self, limit: int) -> bytes | None:
        """Read what is there; see `ByteStream.receive`."""
        try:
            return self._socket.recv(limit)
        except BlockingIOError:
            return None
        except OSError:
            return b""  # reset by the other end: nothing more will come

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _send(fd: int, write: Callable[[memoryview | bytes], int], data: bytes, deadline: float) -> None:
    """Write all of ``data``. The deadline holds however often a little is taken."""
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
