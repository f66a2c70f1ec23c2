"""A writable root for one instance: an overlay over the image, and a data folder on the host's disk."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tare import lazily
from tare.errors import HostError
from tare.host import janitor, mounts, userns
from tare.host.journal import Belongings

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazily.LazyModule("numpy")


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folders of one instance on the host. ``data`` is what the instance sees as /data."""

    folder: Path
    data: Path
    log: Path


#: A filesystem with less than this is full: the smallest disk that a platform makes takes more.
LEAST_BYTES = 1 << 20
FREE_SPACE = "free disk space below {place}: bytes, and also inodes (df -i)"
#: What a filesystem says that takes no more, and the fix.
_DISK = {
    errno.ENOSPC: FREE_SPACE,
    errno.EDQUOT: "raise the quota of {place}, or free disk space there",
    errno.EROFS: "mount the filesystem of {place} writable (dmesg says why it is not), with space on it",
}

#: Files that a sandbox made are opened so: no link is followed, no pipe waited for.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: What the system says of a name behind which there is no file any more: it is gone, a link, or a socket.
_VANISHED = {errno.ENOENT, errno.ELOOP, errno.ENXIO}


@contextlib.contextmanager
def told(what: str, place: Path) -> Iterator[None]:
    """The one place where the system's errors in making things become `HostError`: ``what`` was made below ``place``.

    Files and folders of an instance are made in many places, and each may meet a full disk.
    """
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        fix = _DISK.get(error.errno or 0, "see what `tare doctor` and dmesg say of this host")
        raise HostError(
            f"{what} cannot be made: {error.strerror or error}{where}", fix=fix.format(place=place)
        ) from error


def full(place: Path) -> str | None:
    """The fix, where the filesystem of a folder is full: many a tool that fails for it says something else."""
    try:
        at = os.statvfs(place)
    except OSError:
        return None
    if at.f_bavail * at.f_frsize >= LEAST_BYTES and (at.f_files == 0 or at.f_favail > 0):
        return None
    return FREE_SPACE.format(place=place)


def new_workspace(things: Belongings, folder: Path) -> Workspace:
    """Make the folders of an instance."""
    things.own(janitor.folder(folder))
    data = folder / "data"
    data.mkdir(parents=True)
    return Workspace(folder, data, folder / "console.log")


def overlay_root(things: Belongings, space: Workspace, image_root: Path, users: Path | None = None) -> Path:
    """Mount the image, writable and throw-away, and return where.

    ``users``: the user namespace (`userns.new`) to whose root it all belongs, and /data too.
    """
    upper, work, merged = (space.folder / name for name in ("upper", "work", "root"))
    for folder in (upper, work, merged):
        folder.mkdir()
    if users is not None:
        shown = space.folder / "image"
        shown.mkdir()
        userns.show(things, image_root, shown, users)
        userns.give(upper, work, space.data)
        image_root = shown
    things.own(janitor.mount(merged))
    options = f"lowerdir={image_root},upperdir={upper},workdir={work}"
    fix = "tare needs overlayfs, and TARE_HOME on a filesystem that can be its upper layer (ext4, xfs)"
    mounts.mount("overlay", merged, options=options, fix=fix)
    return merged


def chroot_mounts(things: Belongings, root: Path, data: Path) -> None:
    """What a program expects below /: proc, sys, dev of the host, and the data folder."""
    plan = (
        ("proc", "proc", 0),
        ("sysfs", "sys", mounts.READ_ONLY),
        ("/dev", "dev", mounts.BIND),
        (str(data), "data", mounts.BIND),
    )
    for source, name, flags in plan:
        where = root / name
        things.own(janitor.mount(where))
        where.mkdir(exist_ok=True)
        mounts.mount("none" if flags & mounts.BIND else source, where, source=source, flags=flags)


def drop_page_cache(place: Path) -> None:
    """Write back and drop the cached pages of a file, or of all below a folder; nothing else on the host is touched.

    What is below was made by a sandbox, and may change meanwhile: links and pipes are passed over, not followed or
    waited for, and so is what has vanished.
    """
    _drop(place, None)


def _drop(name: Path | str, folder: int | None) -> None:
    """One file, or all below a folder. Each is opened from its folder, which the sandbox cannot exchange for a link."""
    try:
        kind = os.lstat(name, dir_fd=folder).st_mode
        if not stat.S_ISDIR(kind) and not stat.S_ISREG(kind):  # opening a device may do something
            return
        descriptor = os.open(name, _READ, dir_fd=folder)
    except OSError as error:
        if error.errno in _VANISHED:
            return
        raise
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            for below in os.listdir(descriptor):  # noqa: PTH208 (a path has no open folder)
                _drop(below, descriptor)
        elif stat.S_ISREG(kind):
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def cached_share(file: Path) -> float | None:
    """What share of a file the host's page cache holds, 0 to 1 (mincore(2)); None where there is no such file."""
    try:
        descriptor = os.open(file, _READ)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size == 0:
            return None
        with mmap.mmap(descriptor, found.st_size, prot=mmap.PROT_READ) as pages:
            return _resident_share(pages)
    except ValueError:  # a sandbox has made it shorter meanwhile
        return None
    finally:
        os.close(descriptor)


def _resident_share(pages: mmap.mmap) -> float:
    states = np.empty(-(-len(pages) // mmap.PAGESIZE), dtype=np.uint8)
    # An array over the mapping is only there for its address, and must be gone before the mapping is.
    address = np.frombuffer(pages, dtype=np.uint8).ctypes.data
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(pages)), ctypes.c_void_p(states.ctypes.data)) != 0:
        raise HostError(f"what is cached cannot be read: {os.strerror(ctypes.get_errno())}")
    return float((states & 1).mean())
