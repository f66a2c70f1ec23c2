"""Extraction of the plain kernel from a compressed kernel, for a monitor without a boot loader (Firecracker)."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

from tare.errors import ImageError
from tare.host import distribution, processes, state

#: First bytes of a payload, and the program that unpacks it.
PACKERS = {
    b"\x02\x21\x4c\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
}
PACKAGES = {"xz": "xz-utils"}  # If the package's name differs from the program's.
#: Offsets in the boot protocol's header (Documentation/arch/x86/boot.rst).
_SETUP_SECTORS, _MAGIC, _PAYLOAD = 0x1F1, 0x202, 0x248
_SECTOR = 512
UNPACKED_CAP = 1 << 30
#: The last four bytes of the payload are its unpacked size; they are not part of the packed data.
_SIZE_BYTES = 4


def payload(kernel: bytes) -> bytes:
    """Return the packed kernel in a bzImage. Raises `ImageError` for any other file."""
    if len(kernel) < 0x260 or kernel[_MAGIC : _MAGIC + 4] != b"HdrS":
        raise ImageError(
            "the guest's kernel is no bzImage", fix=f"rm -r {state.home() / 'guest'}; tare fetches it again"
        )
    sectors = kernel[_SETUP_SECTORS] or 4
    offset, length = struct.unpack_from("<II", kernel, _PAYLOAD)
    begin = (sectors + 1) * _SECTOR + offset
    return kernel[begin : begin + length - _SIZE_BYTES]


def ensure(kernel: Path) -> Path:
    """Return the plain ELF file of a kernel, made once, beside it. Raises `ImageError`."""
    place = kernel.with_name(kernel.name.replace("vmlinuz", "vmlinux"))
    if place.exists():
        return place
    packed = payload(kernel.read_bytes())
    packer = next((name for magic, name in PACKERS.items() if packed.startswith(magic)), None)
    if packer is None or processes.find(packer) is None:
        raise ImageError(
            f"the guest's kernel is packed by {packer or 'an unknown packer'}, which is not here to unpack it",
            fix=distribution.install(PACKAGES.get(packer, packer)) if packer else "a kernel of Debian's",
        )
    unpacked = processes.run([packer, "-dc"], stdin=packed, output_cap=UNPACKED_CAP).require().stdout
    if not unpacked.startswith(b"\x7fELF"):
        raise ImageError("the guest's kernel contains no ELF file", fix="a kernel of Debian's")
    with tempfile.NamedTemporaryFile(dir=kernel.parent, delete=False) as part:
        part.write(unpacked)
    Path(part.name).chmod(0o644)
    Path(part.name).rename(place)
    return place
