"""Offsets of fields in a kernel's types, from the kernel's own type information (BTF) in its ELF file."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

from tare.errors import ImageError

#: Fields, by type, that lead from a task to its command and its control group (version 2).
OWNER: Mapping[str, Sequence[str]] = {
    "task_struct": ("comm", "cgroups"),
    "css_set": ("dfl_cgrp",),
    "cgroup": ("kn",),
    "kernfs_node": ("name", "parent"),
}
#: Fields that lead from the mapping of a page of memory to the name of its file.
CODE: Mapping[str, Sequence[str]] = {
    "address_space": ("host",),
    "inode": ("i_dentry",),
    "dentry": ("d_u", "d_name"),
}
_MAGIC = 0xEB9F
_STRUCT, _UNION = 4, 5
#: Size of the data after a type, by kind: fixed bytes, and bytes for each member (linux/btf.h).
_FOLLOWS = {
    1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0), 15: (0, 12),
    17: (4, 0), 19: (0, 12),
}  # fmt: skip


def section(elf: bytes, name: str) -> bytes:
    """Return a section of a 64-bit ELF file. Raises `ImageError` if there is no section of that name."""
    start, size, count, names = struct.unpack_from("<Q10xHHH", elf, 0x28)
    headers = [struct.unpack_from("<IIQQQQ", elf, start + number * size) for number in range(count)]
    texts = headers[names][4]
    for header in headers:
        if elf[texts + header[0] : elf.index(b"\0", texts + header[0])].decode() == name:
            return elf[header[4] : header[4] + header[5]]
    raise ImageError(f"the kernel has no section {name}", fix="a kernel with CONFIG_DEBUG_INFO_BTF, as Debian's are")


def offsets(btf: bytes, wanted: Mapping[str, Sequence[str]] = OWNER) -> dict[str, int]:
    """Return the offsets of the fields in bytes, by the field's name. Raises `ImageError` for a missing field."""
    magic, _, _, length, types, types_bytes, texts, _ = struct.unpack_from("<HBBIIIII", btf)
    if magic != _MAGIC:
        raise ImageError("the kernel's type information is of no known form", fix="a kernel of Debian's")

    def text(at: int) -> str:
        place = length + texts + at
        return btf[place : btf.index(b"\0", place)].decode()

    kinds: list[tuple[int, int, int]] = [
        (0, 0, 0)
    ]  # For each type: its kind, if it has bit fields, and the offset of its members.
    counts, named = [0], {}
    place, end = length + types, length + types + types_bytes
    while place < end:
        name, info, _ = struct.unpack_from("<III", btf, place)
        kind, members = info >> 24 & 0x1F, info & 0xFFFF
        fixed_bytes, member_bytes = _FOLLOWS.get(kind, (0, 0))
        place += 12
        if kind == _STRUCT and text(name) in wanted:
            named[text(name)] = len(kinds)
        kinds.append((kind, info >> 31, place))
        counts.append(members)
        place += fixed_bytes + member_bytes * members

    def fields(number: int, base: int) -> Iterator[tuple[str, int]]:
        """Yield the names and offsets of a type's fields, including the fields of nameless types in it."""
        kind, bitwise, first = kinds[number]
        for member in range(counts[number] if kind in {_STRUCT, _UNION} else 0):
            name, inner, bits = struct.unpack_from("<III", btf, first + 12 * member)
            at = base + (bits & 0xFFFFFF if bitwise else bits) // 8
            if name and text(name):
                yield text(name), at
            else:
                yield from fields(inner, at)

    offsets_by_field = {
        field: at
        for type_name, number in named.items()
        for field, at in fields(number, 0)
        if field in wanted[type_name]
    }
    missing = sorted({field for fields_of in wanted.values() for field in fields_of} - offsets_by_field.keys())
    if missing:
        raise ImageError(f"the kernel's types have no {', '.join(missing)}", fix="report it, it is a bug")
    return offsets_by_field
