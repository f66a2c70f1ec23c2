"""Paths in a tree that a sandbox may change at any moment: resolved from an open folder, and never out of it.

By openat2(2): no link is followed, no mount crossed, and nothing above the folder is reached, whatever is replaced
meanwhile. A path as text guarantees none of that, and is limited to 4,096 characters, which a tree can exceed.
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

#: The call's number, on every architecture; Python has no name for it, nor for these words of its (linux/openat2.h).
_OPENAT2 = 437
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08

#: To list a folder writes nothing: times of access would have to wait for the disk, by the thousand.
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NOATIME | os.O_CLOEXEC
#: How a file is opened once its kind is known: a lease on it that a sandbox holds is not waited for.
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
#: Errors for a name that no longer is, or never was, what was looked for: gone, a link, on another filesystem, no
#: folder, a socket, leased.
_VANISHED = {errno.ENOENT, errno.ELOOP, errno.EXDEV, errno.ENOTDIR, errno.ENXIO, errno.EAGAIN}


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def opened(folder: int, path: str, flags: int, *, across_mounts: bool = False) -> int:
    """A descriptor of what is at a relative path below an open folder, however long that path is. Raises `OSError`."""
    resolve = _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS | (0 if across_mounts else _NO_XDEV)
    *above, name = path.split("/")
    with contextlib.ExitStack() as closing:
        for part in above:
            folder = _openat2(folder, part, os.O_PATH | os.O_DIRECTORY, resolve)
            closing.pop_all().close()  # never more than one of them is open
            closing.callback(os.close, folder)
        return _openat2(folder, name, flags, resolve)


def regular(folder: int, path: str) -> int | None:
    """A descriptor to read a regular file by; None where no regular file is, which includes all that has vanished.

    Its kind is known before it is opened: to open a device or a pipe may do something, or wait.
    """
    with unless_vanished():
        descriptor = opened(folder, path, os.O_PATH)
        try:
            return reopened(descriptor)
        finally:
            os.close(descriptor)
    return None


def reopened(descriptor: int) -> int | None:
    """A descriptor for reading what an ``O_PATH`` descriptor stands for; None where that is no regular file."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    return os.open(f"/proc/self/fd/{descriptor}", _FILE)


@contextlib.contextmanager
def unless_vanished() -> Iterator[None]:
    """Ignore the errors that mean that what was looked for is not there, or not any more."""
    try:
        yield
    except OSError as error:
        if error.errno not in _VANISHED:
            raise


@dataclass(slots=True)
class _Level:
    """A folder on the way down: its name in the one above, which inode it was, and the names in it still to go into."""

    name: str
    inode: tuple[int, int]
    below: list[str]


def walk(top: int, enter: Callable[[int], list[str]], leave: Callable[[int, str], object]) -> None:
    """Go through all folders below an open one, without recursion and with three descriptors, however deep they are.

    ``enter`` is called with every folder, opened, and returns the names in it that are to be gone into. ``leave`` is
    called for each such name with the folder that it is in, after all below it, or when it cannot be gone into.
    No mount is crossed. The way up is by ``..``, and holds only if it leads to the inode that the way down came from.
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
    """The folder of the last level; the levels below one that is no longer in its place are dropped first."""
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
