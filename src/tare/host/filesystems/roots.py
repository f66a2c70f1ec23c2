"""A writable root for one instance: an overlay over the image, and a data folder on the host's disk."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare import lazily
from tare.errors import HostError
from tare.host import own_namespaces, userns
from tare.host.filesystems import volumes
from tare.host.kernel import beneath, mounts
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.timeouts import stretched, until

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
MIN_BYTES = 1 << 20
FREE_SPACE = "free disk space below {place}: bytes, and also inodes (df -i)"
#: The fix for each error of a filesystem that takes no more.
_DISK = {
    errno.ENOSPC: FREE_SPACE,
    errno.EDQUOT: "raise the quota of {place}, or free disk space there",
    errno.EROFS: "mount the filesystem of {place} writable (dmesg says why it is not), with space on it",
}

#: How trees that guests write to are mounted on the host.
UNPRIVILEGED = mounts.NO_SUID | mounts.NO_DEV
#: A file is looked at in such parts, so that its size takes no memory.
WINDOW_BYTES = 64 << 20
#: How long a file is looked at, and how long files are written back and dropped, in seconds. A guest may scatter a page
#: over each of ten thousand windows, which take 2 ms each, or make a million files.
LOOK_LIMIT_S, DROP_LIMIT_S = 5.0, 300.0


@contextlib.contextmanager
def translated(what: str, place: Path) -> Iterator[None]:
    """Raise the system's errors as `HostError`, in this one place: ``what`` was to be made below ``place``.

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
    """The fix, where the filesystem of a folder is full: many tools that fail for that report something else."""
    try:
        at = os.statvfs(place)
    except OSError:
        return None
    if at.f_bavail * at.f_frsize >= MIN_BYTES and (at.f_files == 0 or at.f_favail > 0):
        return None
    return FREE_SPACE.format(place=place)


def new_workspace(cleanup: CleanupStack, folder: Path, size: int | None = None) -> Workspace:
    """Make the folders of an instance. On this host nothing in them has set-user-ID rights, or opens as a device.

    ``size``: of a filesystem of its own for all of them, in bytes.
    """
    cleanup.own(removers.folder(folder))
    folder.mkdir(mode=0o700, parents=True)
    if size is None:
        cleanup.own(removers.mount(folder))
        mounts.on_itself(folder, UNPRIVILEGED)
    else:
        volumes.make(cleanup, folder, size)
    data = folder / "data"
    data.mkdir()
    return Workspace(folder, data, folder / "console.log")


def overlay_root(
    cleanup: CleanupStack,
    space: Workspace,
    image_root: Path,
    users: Path | None = None,
    first: int = userns.FIRST,
) -> Path:
    """Mount the image, writable and throw-away, and return where; on the host with no more privilege than the folders.

    `privileged_within` is for platforms whose users have it in the sandbox. ``users``: the user namespace
    (`userns.new`) to whose root it all belongs, and /data too; ``first``: that root's id on the host.
    """
    upper, work, merged = (space.folder / name for name in ("upper", "work", "root"))
    for folder in (upper, work, merged):
        folder.mkdir()
    if users is not None:
        shown = space.folder / "image"
        shown.mkdir()
        userns.show(cleanup, image_root, shown, users)
        userns.give(upper, work, space.data, first=first)
        image_root = shown
    cleanup.own(removers.mount(merged))
    options = f"lowerdir={image_root},upperdir={upper},workdir={work}"
    if own_namespaces.inside():
        options += ",userxattr"  # the attributes by which an overlay usually marks its files are root's
    fix = "tare needs overlayfs, and TARE_HOME on a filesystem that can be its upper layer (ext4, xfs)"
    mounts.mount("overlay", merged, flags=UNPRIVILEGED, options=options, fix=fix)
    return merged


def privileged_within(root: Path) -> list[str]:
    """Surroundings (`processes.start_held`) in which an overlay root has set-user-ID programs and devices.

    It is a mount namespace; what the host unmounts later goes in there too.
    """
    return _in_mounts_of_its_own(root)


def privileged_beneath_hosts_root(root: Path) -> list[str]:
    """As `privileged_within`, for a program that puts the sandbox's root over the host's, which stays mounted beneath.

    Where a namespace has all of a /proc or a /sys anywhere, also beneath, root of a user namespace may mount another of
    its own (`mnt_already_visible` in the kernel's fs/namespace.c), and would reach what the sandbox's own has covered.
    So a folder of each is mounted on itself: then it counts as covered in part.
    """
    views = mounts.whole_views(mounts.table())
    parts = (Path(view, name) for view in views for name in ("tty", "kernel"))  # of a /proc, of a /sys
    return _in_mounts_of_its_own(root, *(part for part in parts if part.is_dir()))


#: In front of the command: the root, and how many folders follow that are mounted on themselves.
_IN_MOUNTS = """set -e
mount -o remount,bind,suid,dev "$1"
left=$2
shift 2
while [ "$left" -gt 0 ]; do
    mount --bind "$1" "$1"
    left=$((left - 1))
    shift
done
exec "$@"
"""


def _in_mounts_of_its_own(root: Path, *covered: Path) -> list[str]:
    arguments = [str(root), str(len(covered)), *map(str, covered)]
    return ["unshare", "--mount", "--propagation", "slave", "sh", "-c", _IN_MOUNTS, "sh", *arguments]


def chroot_mounts(cleanup: CleanupStack, root: Path, data: Path) -> None:
    """What a program expects below /: proc, sys, dev of the host, and the data folder."""
    _mount(cleanup, root, "proc", "proc")
    _mount(cleanup, root, "sys", "sysfs", mounts.READ_ONLY)
    # In a user namespace no mount can be had without those on it, which might hide something.
    _mount(cleanup, root, "dev", "/dev", mounts.BIND | (mounts.WITH_ALL_BELOW if own_namespaces.inside() else 0))
    _mount(cleanup, root, "data", str(data), mounts.BIND)


#: Devices by which nobody reaches anything, and what programs expect beside them.
HARMLESS_DEVICES = ("null", "zero", "full", "random", "urandom")
_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}


def client_user() -> int:
    """The user and group of all that the client runs: nobody's, neither on the host nor in a namespace of a guest's.

    Without root it is one of tare's own user namespace that no file of the image has (nobody is 65534).
    """
    return 65_533 if own_namespaces.inside() else userns.FIRST + userns.COUNT


def client_mounts(cleanup: CleanupStack, root: Path, data: Path) -> None:
    """What a program of the client's expects below /, who is without rights: harmless devices, sys, the data folder.

    /proc is made for each program, with its own processes alone. The data folder is given to the client's user, who
    gets a name: some tools crash where they have none.
    """
    (root / "proc").mkdir(exist_ok=True)
    _mount(cleanup, root, "sys", "sysfs", mounts.READ_ONLY)
    devices = _mount(cleanup, root, "dev", "tmpfs", mounts.NO_SUID, "mode=755")
    for name in HARMLESS_DEVICES:
        (devices / name).touch()
        mounts.mount("none", devices / name, source=f"/dev/{name}", flags=mounts.BIND)
    for name, number in _LINKS.items():
        (devices / name).symlink_to(f"/proc/self/fd{number}")
    (devices / "shm").mkdir()
    (devices / "shm").chmod(0o1777)
    _mount(cleanup, root, "data", str(data), mounts.BIND)
    user = client_user()
    os.chown(data, user, user)
    top = os.open(root, beneath.FOLDER)
    with _descriptor(top):
        _append(top, "etc/passwd", f"\ntare-client:x:{user}:{user}::/data:/bin/sh\n")
        _append(top, "etc/group", f"\ntare-client:x:{user}:\n")


def _append(top: int, path: str, text: str) -> None:
    """Append to a file of a root, if it has it: an application's own image may lack it, or have a link there."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
    with beneath.unless_vanished():
        file = beneath.opened(top, path, flags)
        with _descriptor(file):
            os.write(file, text.encode())


def _mount(cleanup: CleanupStack, root: Path, name: str, source: str, flags: int = 0, options: str = "") -> Path:
    """Mount a filesystem, or bind a folder, on a folder of a root."""
    where = root / name
    cleanup.own(removers.mount(where))
    where.mkdir(exist_ok=True)
    kind = "none" if flags & mounts.BIND else source
    mounts.mount(kind, where, source=source, flags=flags, options=options)
    return where


def drop_page_cache(place: Path) -> None:
    """Write back and drop the cached pages of a file, or of all below a folder; nothing else on the host is touched.

    What is below was made by a sandbox, and may change meanwhile: links, pipes and mounts are passed over, not followed
    or waited for, and so is what has vanished. Raises `HostError` when something cannot be written back, or it takes
    more than `DROP_LIMIT_S`.
    """
    deadline = until(DROP_LIMIT_S)
    try:
        with beneath.unless_vanished(), _descriptor(os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)) as top:
            if stat.S_ISDIR(os.fstat(top).st_mode):
                beneath.walk(top, lambda folder: _drop_files(folder, place, deadline), lambda *_: None)
            else:
                _drop(beneath.reopened(top))
    except OSError as error:
        raise HostError(
            f"what is cached of {place} cannot be written back and dropped: {error.strerror}",
            fix=_DISK.get(error.errno or 0, "see what dmesg says of the disk").format(place=place),
        ) from error


def _drop_files(folder: int, place: Path, deadline: float) -> list[str]:
    """Drop the files of one folder below ``place``, and return which folders are in it."""
    below: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if time.monotonic() > deadline:
                limit = f"{stretched(DROP_LIMIT_S):.0f} s"
                raise HostError(
                    f"{place} has more files than can be written back and dropped in {limit}",
                    fix="see what the guest writes: no workload makes so many files",
                )
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                _drop(beneath.regular(folder, entry.name))
    return below


def _drop(file: int | None) -> None:
    if file is not None:
        with _descriptor(file):
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


@contextlib.contextmanager
def _descriptor(opened: int) -> Iterator[int]:
    try:
        yield opened
    finally:
        os.close(opened)


def cached_share(folder: Path, name: str) -> float | None:
    """What share of a file's data the host's page cache holds, 0 to 1; None as `cached_bytes`, and without data."""
    counted = cached_bytes(folder, name)
    return counted[0] / counted[1] if counted is not None and counted[1] else None


def cached_bytes(folder: Path, name: str) -> tuple[int, int] | None:
    """How much of a file's data the host's page cache holds (mincore(2)), of how much, in bytes; None: no such file.

    ``name``: the file's path below a folder that a sandbox writes to. Of a sparse file the windows that are all hole do
    not count. None too where data is scattered so widely that it takes more than `LOOK_LIMIT_S`: no workload writes a
    file like that.
    """
    with beneath.unless_vanished(), _descriptor(os.open(folder, beneath.FOLDER)) as top:
        file = beneath.regular(top, name)
        if file is not None:
            with _descriptor(file):
                return _cached_bytes(file)
    return None


def _cached_bytes(file: int) -> tuple[int, int] | None:
    cached = pages = 0
    deadline = until(LOOK_LIMIT_S)
    try:
        for offset, length in _data(file):
            if time.monotonic() > deadline:
                return None
            with mmap.mmap(file, length, prot=mmap.PROT_READ, offset=offset) as window:
                states = _resident(window)
            cached += int(states.sum())
            pages += len(states)
    except (ValueError, OSError):  # a sandbox has made it shorter meanwhile
        return None
    return cached * mmap.PAGESIZE, pages * mmap.PAGESIZE


def _data(file: int) -> Iterator[tuple[int, int]]:
    """The windows of a file that have data, as offset and length: a sparse file's size says nothing of what it has."""
    offset = 0
    while True:
        try:
            offset = os.lseek(file, offset, os.SEEK_DATA) // WINDOW_BYTES * WINDOW_BYTES
        except OSError as error:
            if error.errno == errno.ENXIO:  # none from here on
                return
            raise
        length = min(WINDOW_BYTES, os.fstat(file).st_size - offset)
        if length <= 0:  # made shorter meanwhile
            return
        yield offset, length
        offset += WINDOW_BYTES


def _resident(window: mmap.mmap) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """One number a page: 1 where it is in the cache."""
    states = np.empty(-(-len(window) // mmap.PAGESIZE), dtype=np.uint8)
    # An array over the mapping is only there for its address, and must be gone before the mapping is.
    address = np.frombuffer(window, dtype=np.uint8).ctypes.data
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(window)), ctypes.c_void_p(states.ctypes.data)) != 0:
        raise HostError(f"what is cached cannot be read: {os.strerror(ctypes.get_errno())}")
    return np.bitwise_and(states, 1, dtype=np.uint8)
