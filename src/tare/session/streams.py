"""The byte streams that a session runs over: what a platform hands to it."""

from __future__ import annotations

from typing import Protocol


class ByteStream(Protocol):
    """A two-way byte stream to an agent. One reader and one writer; not thread-safe."""

    def fileno(self) -> int:
        """A descriptor that polls readable when `receive` would not block."""
        ...

    def send(self, data: bytes) -> None:
        """Write all of ``data``. Raises `SessionError` when the other end is gone or takes nothing for 10 s."""
        ...

    def receive(self, limit: int) -> bytes:
        """Read what is there, at most ``limit`` bytes; b"" at the end. Blocks only when nothing is there."""
        ...

    def close(self) -> None:
        """Close both ways. May be called twice."""
        ...
