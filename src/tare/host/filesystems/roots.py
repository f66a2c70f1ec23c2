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
    """The folders of one instance on the host. ``data`` is its /data."""

    folder: Path
    data: Path
    log: Path


#: A filesystem with less than this is full: the smallest disk of a platform takes more.
MIN_BYTES = 1 << 20
FREE_SPACE = "free disk space below {place}: bytes, and also inodes (df -i)"
#: The fix for each error of a full filesystem.
_DISK = {
    errno.ENOSPC: FREE_SPACE,
    errno.EDQUOT: "raise the quota of {place}, or free disk space there",
    errno.EROFS: "mount the filesystem of {place} writable (dmesg says why it is not), with space on it",
}

#: Mount flags on the host for trees that guests write to.
UNPRIVILEGED = mounts.NO_SUID | mounts.NO_DEV
#: A file is inspected in parts of this size, so that its length takes no memory.
WINDOW_BYTES = 64 << 20
#: Time limits for inspecting a file, and for writing back and dropping files, in seconds. A guest may scatter a page
#: over each of ten thousand windows, which take 2 ms each, or create a million files.
LOOK_LIMIT_S, DROP_LIMIT_S = 5.0, 300.0


@contextlib.contextmanager
def translated(what: str, place: Path) -> Iterator[None]:
    """Raise the system's errors as `HostError`. ``what`` was to be created below ``place``.

    Files and folders of an instance are created in many places, and each may meet a full disk.
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
    """Return the fix if a folder's filesystem is full, because many tools then report something else; else None."""
    try:
        at = os.statvfs(place)
    except OSError:
        return None
    if at.f_bavail * at.f_frsize >= MIN_BYTES and (at.f_files == 0 or at.f_favail > 0):
        return None
    return FREE_SPACE.format(place=place)


def new_workspace(cleanup: CleanupStack, folder: Path, size: int | None = None) -> Workspace:
    """Create the folders of an instance, without set-user-ID rights and devices on this host.

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
    """Mount a writable overlay over the image, and return the place; unprivileged on the host, like the folders.

    `privileged_within` is for platforms whose users have privileges in the sandbox. ``users``: the user namespace
    (`userns.new`) whose root owns everything, including /data; ``first``: that root's id on the host.
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
        options += ",userxattr"  # The usual attributes of an overlay belong to root.
    fix = "tare needs overlayfs, and TARE_HOME on a filesystem that can be its upper layer (ext4, xfs)"
    mounts.mount("overlay", merged, flags=UNPRIVILEGED, options=options, fix=fix)
    return merged


def privileged_within(root: Path) -> list[str]:
    """Return surroundings (`processes.start_held`) in which an overlay root has set-user-ID programs and devices.

    It is a mount namespace; later unmounts on the host reach it too.
    """
    return _in_mounts_of_its_own(root)


def privileged_beneath_hosts_root(root: Path) -> list[str]:
    """Like `privileged_within`, for a program that mounts the sandbox's root over the host's, which stays beneath.

    If a namespace contains a complete /proc or /sys anywhere, even beneath, root of a user namespace may mount another
    of its own (`mnt_already_visible` in the kernel's fs/namespace.c), and would reach what the sandbox's own hides. So
    a folder of each is mounted on itself: then it counts as partly covered.
    """
    views = mounts.whole_views(mounts.table())
    parts = (Path(view, name) for view in views for name in ("tty", "kernel"))  # Of a /proc, of a /sys.
    return _in_mounts_of_its_own(root, *(part for part in parts if part.is_dir()))


#: Arguments before the command: the root, and the number of following folders that are mounted on themselves.
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
    """Mount what a program expects below /: proc, sys, dev of the host, and the data folder."""
    _mount(cleanup, root, "proc", "proc")
    _mount(cleanup, root, "sys", "sysfs", mounts.READ_ONLY)
    # A user namespace may only bind a mount with its submounts, which might hide something.
    _mount(cleanup, root, "dev", "/dev", mounts.BIND | (mounts.WITH_ALL_BELOW if own_namespaces.inside() else 0))
    _mount(cleanup, root, "data", str(data), mounts.BIND)


#: Harmless devices, and the files that programs expect beside them.
HARMLESS_DEVICES = ("null", "zero", "full", "random", "urandom")
_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}


def client_user() -> int:
    """Return the user and group of the client's programs, with no rights on the host or in a guest's namespace.

    Without root it is an id of tare's own user namespace that no file of the image has (nobody is 65534).
    """
    return 65_533 if own_namespaces.inside() else userns.FIRST + userns.COUNT


def client_mounts(cleanup: CleanupStack, root: Path, data: Path) -> None:
    """Mount what an unprivileged program of the client's expects below /: harmless devices, sys, the data folder.

    /proc is mounted for each program, with its own processes alone. The data folder is given to the client's user, who
    gets a name, because some tools crash without one.
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
    """Append to a file of a root, if it exists: an application's own image may lack it, or have a link there."""
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
    """Write back and drop the cached pages of a file, or of all files below a folder, and nothing else.

    A sandbox made the tree, and may change it meanwhile: links, pipes, mounts and vanished files are skipped, not
    followed or waited for. Raises `HostError` if something cannot be written back, or if it takes more than
    `DROP_LIMIT_S`.
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
            f"the cached pages of {place} cannot be written back and dropped: {error.strerror}",
            fix=_DISK.get(error.errno or 0, "see what dmesg says of the disk").format(place=place),
        ) from error


def _drop_files(folder: int, place: Path, deadline: float) -> list[str]:
    """Drop the files of one folder below ``place``, and return its subfolders."""
    below: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if time.monotonic() > deadline:
                limit = f"{stretched(DROP_LIMIT_S):.0f} s"
                raise HostError(
                    f"{place} has more files than can be written back and dropped in {limit}",
                    fix="see what the guest writes: no workload makes this many files",
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
    """Return the share of a file's data in the host's page cache, 0 to 1; None like `cached_bytes`, or if empty."""
    counted = cached_bytes(folder, name)
    return counted[0] / counted[1] if counted is not None and counted[1] else None


def cached_bytes(folder: Path, name: str) -> tuple[int, int] | None:
    """Return the bytes of a file's data in the host's page cache (mincore(2)), and the total; None: no such file.

    ``name``: the file's path below a folder that a sandbox writes to. Windows of a sparse file that are only hole do
    not count. None too if the data is scattered so widely that it takes more than `LOOK_LIMIT_S`: no workload writes a
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
    except (ValueError, OSError):  # A sandbox has truncated it meanwhile.
        return None
    return cached * mmap.PAGESIZE, pages * mmap.PAGESIZE


def _data(file: int) -> Iterator[tuple[int, int]]:
    """Yield the windows of a file with data, as offset and length: a sparse file's size does not show its data."""
    offset = 0
    while True:
        try:
            offset = os.lseek(file, offset, os.SEEK_DATA) // WINDOW_BYTES * WINDOW_BYTES
        except OSError as error:
            if error.errno == errno.ENXIO:  # There is no data from here on.
                return
            raise
        length = min(WINDOW_BYTES, os.fstat(file).st_size - offset)
        if length <= 0:  # It was truncated meanwhile.
            return
        yield offset, length
        offset += WINDOW_BYTES


def _resident(window: mmap.mmap) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return a number for each page: 1 if it is in the cache."""
    states = np.empty(-(-len(window) // mmap.PAGESIZE), dtype=np.uint8)
    # The array over the mapping only provides its address, and must be released before the mapping is.
    address = np.frombuffer(window, dtype=np.uint8).ctypes.data
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(window)), ctypes.c_void_p(states.ctypes.data)) != 0:
        raise HostError(f"the cached pages cannot be read: {os.strerror(ctypes.get_errno())}")
    return np.bitwise_and(states, 1, dtype=np.uint8)
