"""The plain kernel out of a compressed one."""

import gzip
import lzma
import struct

import pytest

from tare.errors import ImageError
from tare.image import vmlinux

ELF = b"\x7fELF" + bytes(1000)


def _bzimage(packed):
    """A file laid out as the boot protocol says: header, 3 sectors of set-up code, then the payload with its size."""
    kernel = bytearray(0x260)
    kernel[0x1F1] = 3
    kernel[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", kernel, 0x248, 700, len(packed) + 4)
    return bytes(kernel).ljust(4 * 512 + 700, b"\0") + packed + struct.pack("<I", len(ELF)) + b"more"


def test_the_payload_is_found_without_its_size():
    assert vmlinux.payload(_bzimage(b"packed")) == b"packed"


def test_it_is_unpacked_once_beside_the_packed_one(tmp_path):
    kernel = tmp_path / "vmlinuz-6.1"
    kernel.write_bytes(_bzimage(gzip.compress(ELF)))
    plain = vmlinux.ensure(kernel)
    assert plain == tmp_path / "vmlinux-6.1"
    assert plain.read_bytes() == ELF
    kernel.write_bytes(b"")
    assert vmlinux.ensure(kernel) == plain
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vmlinux-6.1", "vmlinuz-6.1"]


@pytest.mark.parametrize(
    ("bytes_", "says"),
    [(b"MZ", "no bzImage"), (_bzimage(b"zip?"), "unknown packer"), (_bzimage(gzip.compress(b"text")), "no ELF")],
)
def test_what_is_no_kernel_is_said_in_one_line(tmp_path, bytes_, says):
    kernel = tmp_path / "vmlinuz-6.1"
    kernel.write_bytes(bytes_)
    with pytest.raises(ImageError, match=says) as caught:
        vmlinux.ensure(kernel)
    assert caught.value.fix
    assert list(tmp_path.iterdir()) == [kernel]


def test_a_packer_that_is_missing_is_named_by_its_package(tmp_path, monkeypatch):
    kernel = tmp_path / "vmlinuz-6.1"
    kernel.write_bytes(_bzimage(lzma.compress(b"\x7fELF")))
    monkeypatch.setattr(vmlinux.processes, "find", lambda _: None)
    monkeypatch.setattr(vmlinux.distribution, "install", lambda package: f"install {package}")
    with pytest.raises(ImageError, match="packed by xz, which is not here") as caught:
        vmlinux.ensure(kernel)
    assert caught.value.fix == "install xz-utils"
