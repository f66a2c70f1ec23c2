"""Functions of a kernel by address, from the table of names inside the kernel. Debian ships no separate table.

The layout is that of scripts/kallsyms.c of Linux 6.1, with each part aligned to 8 bytes: offsets of 32 bits, their
base, their number, the names as tokens, the start of each 256th name, their order, the tokens, and the start of each
token.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterator, Sequence

from tare.errors import ImageError

#: A token of a single character has that character's code. The tokens of digits always exist.
_DIGITS = b"".join(b"%d\0" % digit for digit in range(10))
_TOKENS, _GROUP = 256, 256
#: Limit in bytes for 256 names, and for the distance from the markers to the tokens. Since 6.2, and in Debian's 6.1,
#: the order by name lies between them.
_MAX_NAMES_BYTES, _MAX_DISTANCE = _GROUP * 512, 8 << 20
_CODE = "tTwW"
#: The kernel's variable with the address of the array of all pages of memory.
_PAGES = "vmemmap_base"


def functions(kernel: bytes) -> list[tuple[int, str]]:
    """Return address and name of all named code in the kernel, in ascending order, and of `_PAGES`.

    ``kernel``: its ELF file. Addresses are those without randomisation. Raises `ImageError` if it has no such table.
    """
    for place in re.finditer(re.escape(_DIGITS), kernel):
        tokens = _tokens(kernel, place.start())
        if tokens is None:
            continue
        table, texts = tokens
        for begin, markers in _markers(kernel, table):
            names = _names(kernel, begin, markers)
            if names is not None:
                return sorted(_decoded(kernel, names, texts))
    raise ImageError("the kernel has no table of its symbols", fix="a kernel with CONFIG_KALLSYMS, as Debian's are")


def _aligned(size: int) -> int:
    return (size + 7) // 8 * 8


def _tokens(kernel: bytes, digits: int) -> tuple[int, list[str]] | None:
    """Return the start of the table of tokens, and the tokens; None if this is another table."""
    table = digits
    for _ in range(ord("0")):
        table = kernel.rfind(b"\0", 0, table - 1) + 1
    texts: list[bytes] = []
    starts = []
    end = table
    for _ in range(_TOKENS):
        starts.append(end - table)
        after = kernel.index(b"\0", end)
        texts.append(kernel[end:after])
        end = after + 1
    index = table + _aligned(end - table)
    if table % 8 or kernel[index : index + 2 * _TOKENS] != struct.pack(f"<{_TOKENS}H", *(at & 0xFFFF for at in starts)):
        return None
    return table, [text.decode("latin-1") for text in texts]


def _markers(kernel: bytes, end: int) -> Iterator[tuple[int, list[int]]]:
    """Yield possible starts of the markers before a place, each with the ascending numbers from there, the first 0."""
    for begin in range(end - 8, end - _MAX_DISTANCE, -8):
        if kernel[begin : begin + 4] == bytes(4):
            markers = [0]
            for at in range(begin + 4, end, 4):
                marker = struct.unpack_from("<I", kernel, at)[0]
                if not markers[-1] < marker < markers[-1] + _MAX_NAMES_BYTES:
                    break
                markers.append(marker)
            if len(markers) > 2:
                yield begin, markers


def _names(kernel: bytes, end: int, markers: Sequence[int]) -> int | None:
    """Return the start of the names that end before a place, or None."""
    for place in range((end - markers[-1]) // 8 * 8, end - markers[-1] - _MAX_NAMES_BYTES, -8):
        count = struct.unpack_from("<I", kernel, place - 8)[0]
        groups = -(-count // _GROUP)
        # Data after the markers may look like more markers.
        if 2 < groups <= len(markers) <= groups + 2:
            begins = itertools.islice(_places(kernel, place), 0, count, _GROUP)
            if all(at - place == marker for at, marker in zip(begins, markers, strict=False)):
                return place
    return None


def _places(kernel: bytes, place: int) -> Iterator[int]:
    """Yield the start of each name."""
    while True:
        yield place
        length, extra = kernel[place], 0
        if length & 0x80:
            length, extra = length & 0x7F | kernel[place + 1] << 7, 1
        place += 1 + extra + length


def _decoded(kernel: bytes, names: int, texts: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the symbols of code, and `_PAGES`; of several at one address, only the first."""
    count = struct.unpack_from("<I", kernel, names - 8)[0]
    base = struct.unpack_from("<Q", kernel, names - 16)[0]
    offsets = struct.unpack_from(f"<{count}i", kernel, names - 16 - _aligned(4 * count))
    addresses: set[int] = set()
    for offset, (begin, end) in zip(offsets, itertools.pairwise(_places(kernel, names)), strict=False):
        first = begin + (2 if kernel[begin] & 0x80 else 1)
        name = "".join(texts[token] for token in kernel[first:end])
        address = base - 1 - offset
        # An offset that is not negative belongs to a per-CPU variable.
        if offset < 0 and (name[0] in _CODE or name[1:] == _PAGES) and address not in addresses:
            addresses.add(address)
            yield address, name[1:]
