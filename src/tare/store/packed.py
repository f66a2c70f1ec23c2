"""Packed data: outputs and attachments by zstandard, the hits of footprints as numbers of few bytes.

Hits are two numbers for each thing: the id of its name minus the previous id, and its count. Each number has 7 bits a
byte, low bits first, and the top bit set if more bytes follow (LEB128). The first number is signed, in zigzag (0, -1,
1, -2 ...), both as in Protocol Buffers (https://protobuf.dev/programming-guides/encoding/). So unpacked hits are always
in proportion to their bytes, however a file was made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import zstandard

from tare.store.limits import HITS_CAP
from tare.store.row_rules import BrokenError

#: Bytes of the longest number, of 63 bits.
_MAX_BYTES = 9

#: Memory for unpacking beside the result. tare packs with windows of at most 2 MiB.
_WINDOW = 1 << 27


#: The longest header of a frame, magic number included (RFC 8878, 3.1.1).
HEADER_BYTES = 18


@dataclass(frozen=True, slots=True)
class Output:
    """A raw output of a trial: the stored part, and the full length."""

    data: bytes
    full_bytes: int

    @property
    def capped(self) -> bool:
        """True if more was produced than is stored."""
        return self.full_bytes > len(self.data)


def stated_length(header: object) -> int:
    """Return the unpacked length that packed data state, or 0. ``header``: their first `HEADER_BYTES`."""
    try:
        return max(0, zstandard.frame_content_size(header)) if isinstance(header, bytes) else 0
    except zstandard.ZstdError:
        return 0


def unpack(packed: object, cap: int) -> bytes:
    """Return the first ``cap`` bytes of packed data, because a file may lie about the length. Raises `BrokenError`."""
    if not isinstance(packed, bytes):
        raise BrokenError("a value that should be packed bytes is not")
    try:
        with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(packed) as reader:
            return reader.read(cap)
    except zstandard.ZstdError as error:
        raise BrokenError(f"its packed data cannot be unpacked: {error}") from error


def pack_hits(ids: npt.NDArray[np.int64], hits: npt.NDArray[np.int64]) -> bytes:
    """Pack the ids of things (numbers from 0) and how often each ran (from 0); both have the same length."""
    steps = np.diff(ids, prepend=0)
    numbers = np.stack(((steps << 1) ^ (steps >> 63), hits), axis=1).ravel()
    most_bytes = -(-int(numbers.max(initial=1)).bit_length() // 7)
    # One row for each byte of all numbers, with a mask of the numbers that have this byte: loops over long rows are
    # much faster.
    shifted = [numbers >> shift for shift in range(0, 7 * most_bytes, 7)]
    has_byte = [np.ones(len(numbers), bool), *(bits > 0 for bits in shifted[1:])]
    continues = [*has_byte[1:], np.zeros(len(numbers), bool)]
    rows = [
        (bits & 0x7F).astype(np.uint8) | np.where(on, 0x80, 0).astype(np.uint8)
        for bits, on in zip(shifted, continues, strict=True)
    ]
    packed: bytes = np.stack(rows, axis=1)[np.stack(has_byte, axis=1)].tobytes()
    return packed


def unpack_hits(packed: object) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Unpack the ids of things (any number) and how often each ran (1 to 2^63 - 1). Raises `BrokenError`."""
    if not isinstance(packed, bytes):
        raise BrokenError("a value that should be packed hits is not")
    if len(packed) > HITS_CAP:
        raise BrokenError(f"a footprint has more than {HITS_CAP >> 20} MiB of hits")
    data = np.frombuffer(packed, np.uint8)
    ends = np.flatnonzero(data < 0x80) + 1
    lengths = np.diff(ends, prepend=0)
    if len(ends) % 2 or (ends[-1] if len(ends) else 0) != len(data) or lengths.max(initial=0) > _MAX_BYTES:
        raise BrokenError("packed hits are no pairs of numbers")
    starts = ends - lengths
    shifts = 7 * (np.arange(len(data)) - np.repeat(starts, lengths))
    numbers = np.add.reduceat((data & 0x7F).astype(np.int64) << shifts, starts) if len(data) else np.empty(0, np.int64)
    steps, hits = numbers[::2], numbers[1::2]
    if hits.min(initial=1) < 1:
        raise BrokenError(f"hits is {hits.min()}")
    return np.cumsum((steps >> 1) ^ -(steps & 1)), hits
