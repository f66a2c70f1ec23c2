"""Disks of QEMU's guests: past the host's page cache, with an I/O thread, as servers have it; or not."""

from __future__ import annotations

import functools
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostError
from tare.host import distribution, processes, state
from tare.platforms.parts.machines.vm import PROGRAM

#: In the order of preference: how the host's kernel is handed requests that pass its page cache.
ENGINES = ("io_uring", "native")
TRY_LIMIT_S = 30.0
#: Of a filesystem without O_DIRECT an open says EINVAL, and QEMU says so in words of its own.
_NO_DIRECT = "O_DIRECT"


@dataclass(frozen=True, slots=True)
class DiskIo:
    """The I/O of a machine's disks: ``cache`` and ``aio`` as QEMU's ``-drive`` and libvirt call them."""

    cache: str  # none or writeback
    aio: str  # io_uring, native, threads
    io_thread: bool = True  # one for all disks, beside the thread that runs the rest of QEMU

    def options(self) -> str:
        """Return the settings as options of QEMU's ``-drive``, such as ``cache=none,aio=native``."""
        return f"cache={self.cache},aio={self.aio}"

    def described(self) -> str:
        """Return the settings in words, for the fairness manifest."""
        return f"cache={self.cache}, aio={self.aio}, {'an' if self.io_thread else 'no'} I/O thread"


#: QEMU's own default.
WRITE_BACK = DiskIo("writeback", "threads", io_thread=False)


def disk_io(cache: str, *, io_thread: bool = True) -> DiskIo:
    """Return how this host's QEMU opens disks. Raises `HostError` where it cannot pass the host's page cache."""
    return WRITE_BACK if cache == "writeback" else DiskIo("none", engine(), io_thread)


@functools.cache
def engine() -> str:
    """Return the best engine by which QEMU here reads past the page cache: tried on a file where instances have theirs.

    Raises `HostError`.
    """
    place = state.work()
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=place) as file:  # without a name: a tare that is killed here leaves nothing
        file.truncate(1 << 20)
        complaints = [_complaint(Path(f"/proc/{os.getpid()}/fd/{file.fileno()}"), aio) for aio in ENGINES]
        for aio, complaint in zip(ENGINES, complaints, strict=True):
            if not complaint:
                return aio
    if all(_NO_DIRECT in complaint for complaint in complaints):
        raise HostError(
            f"the filesystem of {place} has no direct I/O, which disks of guests take (cache=none)",
            fix="put TARE_HOME on ext4 or xfs, or take the variant that writes back (qemu-writeback)",
        )
    raise HostError(
        f"QEMU cannot use its disks by {' or '.join(ENGINES)}: {complaints[0]}",
        fix="take the variant that writes back (qemu-writeback)",
    )


def _complaint(file: Path, aio: str) -> str:
    """Return what QEMU says against a file that is opened so; "" where it opens it."""
    # Its monitor has no end that a closed pipe would be: killed, tare takes it along.
    argv = [*processes.WITH_TARE, PROGRAM, "-M", "none", "-nodefaults", "-display", "none", "-monitor", "stdio"]
    argv += ["-blockdev", f"driver=file,node-name=disk,filename={file},cache.direct=on,aio={aio}"]
    tried = processes.run(argv, stdin=b"quit\n", time_limit_s=TRY_LIMIT_S)
    if tried.code == 0:
        return ""
    return tried.message


def overlay(base: Path, folder: Path) -> Path:
    """Make a qcow2 file in the folder over a disk that is never written. Its flushes are carried out.

    QEMU's own ``snapshot=on`` would throw a guest's flushes away.
    """
    place = folder / "root.qcow2"
    argv = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(base), str(place)]
    processes.run(argv).require(fix=distribution.install("qemu-utils"))
    return place
