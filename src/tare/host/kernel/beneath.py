"""Paths in a tree that a sandbox may change at any moment: resolved from an open folder, and never outside of it.

By openat2(2): no link is followed, no mount crossed, and nothing above the folder is reached, whatever is replaced
meanwhile. A path as text guarantees none of this, and is limited to 4,096 characters, which a tree can exceed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tare.errors import HostError

#: The call's number, on every architecture. Python has no name for it, nor for these flags (linux/openat2.h).
_OPENAT2 = 437
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08

#: Without access times: otherwise listing a folder would write to the disk, thousands of times.
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NOATIME | os.O_CLOEXEC
#: Flags for a file of a known kind: do not wait for a lease on it that a sandbox holds.
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
#: Errors for a name whose file has vanished or is of another kind: gone, a link, on another filesystem, no folder, a
#: socket, leased.
_VANISHED = {errno.ENOENT, errno.ELOOP, errno.EXDEV, errno.ENOTDIR, errno.ENXIO, errno.EAGAIN}


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def opened(folder: int, path: str, flags: int, *, across_mounts: bool = False) -> int:
    """Return a descriptor for a relative path of any length below an open folder. Raises `OSError`."""
    resolve = _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS | (0 if across_mounts else _NO_XDEV)
    *above, name = path.split("/")
    with contextlib.ExitStack() as closing:
        for part in above:
            folder = _openat2(folder, part, os.O_PATH | os.O_DIRECTORY, resolve)
            closing.pop_all().close()  # Only one of them is open at a time.
            closing.callback(os.close, folder)
        return _openat2(folder, name, flags, resolve)


def regular(folder: int, path: str) -> int | None:
    """Return a descriptor to read a regular file, or None if there is none, for example because it has vanished.

    Its kind is checked before it is opened: opening a device or a pipe may have side effects, or wait.
    """
    with unless_vanished():
        descriptor = opened(folder, path, os.O_PATH)
        try:
            return reopened(descriptor)
        finally:
            os.close(descriptor)
    return None


def reopened(descriptor: int) -> int | None:
    """Return a descriptor for reading the file of an ``O_PATH`` descriptor; None if it is no regular file."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    return os.open(f"/proc/self/fd/{descriptor}", _FILE)


@contextlib.contextmanager
def unless_vanished() -> Iterator[None]:
    """Ignore the errors of a file that does not exist, or no longer exists."""
    try:
        yield
    except OSError as error:
        if error.errno not in _VANISHED:
            raise


@dataclass(slots=True)
class _Level:
    """A folder on the way down: its name in its parent, its inode, and the names in it still to visit."""

    name: str
    inode: tuple[int, int]
    below: list[str]


def walk(top: int, enter: Callable[[int], list[str]], leave: Callable[[int, str], object]) -> None:
    """Visit all folders below an open folder, without recursion and with three descriptors, at any depth.

    ``enter`` is called with every opened folder, and returns the names in it to visit. ``leave`` is called for each
    such name with its parent folder, after everything below it, or if it cannot be entered. No mount is crossed. The
    way up is by ``..``, and is valid only if it leads to the inode of the way down.
    """
    current = os.open(".", FOLDER, dir_fd=top)
    try:
        levels = [_Level("", _inode(current), enter(current))]
        while True:
            if levels[-1].below:
                name = levels[-1].below.pop()
                child = _into(current, name)
                if child is None:
                    leave(current, name)
                    continue
                os.close(current)
                current = child
                levels.append(_Level(name, _inode(current), []))
                levels[-1].below = enter(current)
            elif len(levels) == 1:
                return
            else:
                name, depth = levels.pop().name, len(levels)
                up = _up(top, current, levels)
                os.close(current)
                current = up
                if len(levels) == depth:
                    leave(current, name)
    finally:
        os.close(current)


def _up(top: int, current: int, levels: list[_Level]) -> int:
    """Return the folder of the last level, after dropping the levels below a folder that was moved."""
    parent = os.open("..", FOLDER, dir_fd=current)
    if _inode(parent) == levels[-1].inode:
        return parent
    os.close(parent)
    above = os.open(".", FOLDER, dir_fd=top)
    for depth, level in enumerate(levels[1:], start=1):
        child = _into(above, level.name)
        if child is None or _inode(child) != level.inode:
            if child is not None:
                os.close(child)
            del levels[depth:]
            break
        os.close(above)
        above = child
    return above


def _into(folder: int, name: str) -> int | None:
    with unless_vanished():
        return opened(folder, name, FOLDER)
    return None


def _inode(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _openat2(folder: int, name: str, flags: int, resolve: int) -> int:
    how = _How(flags | os.O_CLOEXEC, 0, resolve)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    path = ctypes.c_char_p(os.fsencode(name))
    descriptor = _libc().syscall(ctypes.c_long(_OPENAT2), ctypes.c_int(folder), path, ctypes.byref(how), size)
    if descriptor >= 0:
        return int(descriptor)
    number = ctypes.get_errno()
    if number == errno.ENOSYS:
        raise HostError(
            "this kernel has no openat2(2), without which a sandbox could lead tare out of its folders",
            fix="use Linux 5.6 or newer",
        )
    raise OSError(number, os.strerror(number), name)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
