"""Contents that are kept packed by zstandard: outputs and attachments."""

from __future__ import annotations

from dataclasses import dataclass

import zstandard

from tare.store.rows import BrokenError

#: What unpacking may take beside what comes out. tare packs with windows of 2 MiB at most.
_WINDOW = 1 << 27


@dataclass(frozen=True, slots=True)
class Output:
    """A raw output of a trial: what was kept, and how long it was."""

    data: bytes
    full_bytes: int

    @property
    def capped(self) -> bool:
        """Whether more was produced than is kept."""
        return self.full_bytes > len(self.data)


def unpack(packed: object, cap: int) -> bytes:
    """The first ``cap`` bytes that were packed: a file may lie about the length. Raises `BrokenError`."""
    if not isinstance(packed, bytes):
        raise BrokenError("what should be packed bytes is none")
    try:
        with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(packed) as reader:
            return reader.read(cap)
    except zstandard.ZstdError as error:
        raise BrokenError(f"what it keeps cannot be unpacked: {error}") from error
