"""Contents that are kept packed by zstandard: outputs and attachments."""

from __future__ import annotations

import zstandard

from tare.store.rows import Broken

#: What unpacking may take beside what comes out. tare packs with windows of 2 MiB at most.
_WINDOW = 1 << 27


def unpack(packed: object, cap: int) -> bytes:
    """The first ``cap`` bytes that were packed: a file from elsewhere may lie about the length. Raises `Broken`."""
    if not isinstance(packed, bytes):
        raise Broken("what should be packed bytes is none")
    try:
        with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(packed) as reader:
            return reader.read(cap)
    except zstandard.ZstdError as error:
        raise Broken(f"what it keeps cannot be unpacked: {error}") from error
