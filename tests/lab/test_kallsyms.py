"""The kernel's own table of symbols, as scripts/kallsyms.c of Linux 6.1 and of 6.2 writes it."""

import struct

import pytest

from tare.errors import ImageError
from tare.features.kernel.lab import kallsyms

BASE = 0xFFFFFFFF81000000
LONG = "x" * 150  # its length takes two bytes


def padded(data):
    return data + bytes(-len(data) % 8)


def table(symbols, *, by_name):
    """A kernel's bytes with a table of (type, name, offset); ``by_name``: whether their order by name is in it."""
    tokens = [bytes([code]) if 32 <= code < 127 else b"" for code in range(256)]
    tokens[200] = b"sys_"
    texts = b"".join(token + b"\0" for token in tokens)
    starts, place = [], 0
    for token in tokens:
        starts.append(place)
        place += len(token) + 1
    names, markers = b"", []
    for number, (kind, name, _) in enumerate(symbols):
        if number % 256 == 0:
            markers.append(len(names))
        packed = (kind + name).encode().replace(b"sys_", b"\xc8")
        length = [len(packed)] if len(packed) < 128 else [len(packed) & 0x7F | 0x80, len(packed) >> 7]
        names += bytes(length) + packed
    order = b"".join(struct.pack(">I", number)[1:] for number in range(len(symbols))) if by_name else b""
    parts = [
        struct.pack(f"<{len(symbols)}i", *(offset for _, _, offset in symbols)), struct.pack("<Q", BASE),
        struct.pack("<I", len(symbols)), names, struct.pack(f"<{len(markers)}I", *markers), order, texts,
        struct.pack("<256H", *starts),
    ]  # fmt: skip
    # Another table of characters, as kernels have several.
    return b"\x7fELF" + bytes(60) + bytes(range(256)) * 2 + b"".join(map(padded, parts)) + bytes(64)


def symbols():
    code = [("t", f"sys_{number}", -1 - 16 * number) for number in range(1000)]
    code[300] = ("T", LONG, -1 - 16 * 300)
    return [("A", "cpu_number", 0x20), *code, ("d", "some_data", -1 - (1 << 20)), ("D", "vmemmap_base", -1 - (2 << 20))]


@pytest.mark.parametrize("by_name", [False, True])
def test_code_is_known_by_address_and_a_processors_variables_and_data_are_left_out(by_name):
    functions = kallsyms.functions(table(symbols(), by_name=by_name))
    assert functions[0] == (BASE, "sys_0")
    assert functions[300] == (BASE + 4800, LONG)
    assert functions[-1] == (BASE + (2 << 20), "vmemmap_base")
    assert len(functions) == 1001


def test_of_several_names_of_one_place_the_first_is_taken():
    functions = kallsyms.functions(table([*symbols(), ("t", "alias", -1)], by_name=True))
    assert functions[0] == (BASE, "sys_0")


def test_a_kernel_without_a_table_is_said():
    with pytest.raises(ImageError, match="no table of its symbols"):
        kallsyms.functions(bytes(4096) + b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\x00" + bytes(4096))
