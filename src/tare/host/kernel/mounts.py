"""Mounts of a process (`table`), and mounting by the system call itself.

A ``mount`` command that outlives a killed tare would mount after the clean-up has looked. A system call ends with its
caller. Python has no function for it.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostError
from tare.host.kernel import beneath

#: mount(2)
READ_ONLY, NO_SUID, NO_DEV, REMOUNT, BIND, WITH_ALL_BELOW = 1, 2, 4, 32, 4096, 16384
#: umount2(2): lazily, because a dying process may still have it open.
_DETACH, _NO_LINKS = 2, 8
_ESCAPED = re.compile(rb"\\([0-7]{3})")
#: open_tree(2), mount_setattr(2) and move_mount(2), whose numbers are the same on all architectures, and their flags.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CLONE, _AT_FDCWD, _EMPTY_PATH, _MOVE_EMPTY_PATH = 1, -100, 0x1000, 4
_ATTR_READ_ONLY, _ATTR_MAPPED = 0x1, 0x100000


def mount(kind: str, target: Path, *, source: str = "", flags: int = 0, options: str = "", fix: str = "") -> None:
    """Mount ``source`` (default: the filesystem's own name) on a folder. Raises `HostError` with ``fix``."""
    named = [os.fsencode(text) for text in (source or kind, str(target), kind, options)]
    if ctypes.CDLL(None, use_errno=True).mount(named[0], named[1], named[2], ctypes.c_ulong(flags), named[3]) != 0:
        why = os.strerror(ctypes.get_errno())
        raise HostError(f"{source or kind} cannot be mounted on {target}: {why}", fix=fix or "see what dmesg says")


def on_itself(folder: Path, flags: int) -> None:
    """Mount a folder on itself, with flags in addition to its filesystem's. Raises `HostError`."""
    own_flags = os.statvfs(folder).f_flag & (os.ST_RDONLY | os.ST_NOEXEC)  # The numbers are mount(2)'s.
    mount("none", folder, source=str(folder), flags=BIND)
    mount("none", folder, flags=REMOUNT | BIND | flags | own_flags)


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of ``/proc/PID/mountinfo`` (proc(5))."""

    device: str  # major:minor, unique for a filesystem
    root: str  # The mounted directory of the filesystem.
    point: str
    options: tuple[str, ...]  # Of this mount.
    kind: str
    source: str
    super_options: tuple[str, ...]  # Of its filesystem, for all of its mounts.

    @property
    def writable(self) -> bool:
        """True if neither it nor its filesystem is read-only."""
        return "ro" not in self.options and "ro" not in self.super_options

    @property
    def upper(self) -> str | None:
        """The folder that receives an overlay's writes; None for other mounts, or if it is read-only."""
        folders = (text.removeprefix("upperdir=") for text in self.super_options if text.startswith("upperdir="))
        return next(folders, None)


def table(pid: int | None = None) -> list[Mount]:
    """Return the mounts that a process sees, by default this one: oldest first. Raises `OSError` if it has ended."""
    return parse(Path("/proc", str(pid or "self"), "mountinfo").read_bytes())


def parse(mountinfo: bytes) -> list[Mount]:
    """Parse ``/proc/PID/mountinfo``. Names are any bytes: of white space, only the separators are surely escaped."""
    mounts = []
    for line in filter(None, mountinfo.split(b"\n")):
        mount, _, filesystem = line.partition(b" - ")
        _, _, device, root, point, options, *_ = mount.split(b" ")
        kind, source, super_options = filesystem.split(b" ", 2)
        mounts.append(
            Mount(
                device=_plain(device),
                root=_plain(root),
                point=_plain(point),
                options=_each(options),
                kind=_plain(kind),
                source=_plain(source),
                super_options=_each(super_options),
            )
        )
    return mounts


def _each(options: bytes) -> tuple[str, ...]:
    return tuple(map(_plain, options.split(b",")))


def _plain(field: bytes) -> str:
    """Return a field without the octal numbers that stand for separators and backslashes."""
    return os.fsdecode(_ESCAPED.sub(lambda number: bytes([int(number[1], 8)]), field))


def points() -> list[str]:
    """Return the mount points that this process sees, oldest first."""
    return [mount.point for mount in table()]


def whole_views(mounts: Iterable[Mount]) -> list[str]:
    """Return the mount points of complete /proc and /sys filesystems."""
    return [mount.point for mount in mounts if mount.kind in {"proc", "sysfs"} and mount.root == "/"]


def filesystem(folder: Path) -> str:
    """Return kind and device of the filesystem that holds a folder, such as ``ext4 on /dev/sda1``."""
    return filesystem_among(table(), folder.resolve())


def filesystem_among(mounts: Iterable[Mount], folder: Path) -> str:
    """Return the result of `filesystem` among these mounts; ``unknown`` if none of them is above the folder.

    The longest mount point above the folder counts; of two mounts there, the later hides the first.
    """
    above = [mount for mount in mounts if folder.is_relative_to(mount.point)]
    if not above:
        return "unknown"
    nearest = max(reversed(above), key=lambda mount: len(mount.point))
    return f"{nearest.kind} on {nearest.source}"


def unmount(point: str) -> None:
    """Unmount the last mount on a path. Raises `HostError`, also if nothing is mounted there anymore."""
    if ctypes.CDLL(None, use_errno=True).umount2(os.fsencode(point), _DETACH | _NO_LINKS) != 0:
        why = os.strerror(ctypes.get_errno())
        raise HostError(f"{point} cannot be unmounted: {why}", fix=f"umount -l {point!r}")


def clear(folder: Path) -> None:
    """Unmount everything that is mounted on a folder or in it, last first; the mounted files stay.

    Raises `HostError` with the first mount that stays.
    """
    within = _within(folder)
    for point in reversed(within):
        _detach(folder, point)
    if stuck := _within(folder):
        raise HostError(
            f"{folder} is not removed: {stuck[0]!r} is mounted in it", fix=f"umount -l {shlex.quote(stuck[0])}"
        )


def _within(folder: Path) -> list[str]:
    return [point for point in points() if point == str(folder) or point.startswith(f"{folder}/")]


def _detach(folder: Path, point: str) -> None:
    try:
        top = os.open(folder, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if point == str(folder):
            _umount(top)
        else:
            with beneath.unless_vanished():
                place = beneath.opened(top, point[len(str(folder)) + 1 :], os.O_PATH, across_mounts=True)
                try:
                    _umount(place)
                finally:
                    os.close(place)
    finally:
        os.close(top)


def _umount(place: int) -> None:
    """Unmount by descriptor: a path may be too long for the kernel, and may lead elsewhere by now."""
    ctypes.CDLL(None, use_errno=True).umount2(f"/proc/self/fd/{place}".encode(), _DETACH)


class _Attributes(ctypes.Structure):
    """The kernel's struct mount_attr."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "namespace"))


def mapped(source: Path, target: Path, namespace: int) -> None:
    """Bind a folder or file read-only, with owners mapped by a user namespace (a descriptor). Raises `HostError`.

    A file of root's belongs to the namespace's root there. Since Linux 5.12; below an overlay since 5.19.
    """
    try:
        tree = _call(_OPEN_TREE, _AT_FDCWD, os.fsencode(source), _CLONE | os.O_CLOEXEC)
        try:
            attributes = _Attributes(set=_ATTR_MAPPED | _ATTR_READ_ONLY, namespace=namespace)
            size = ctypes.sizeof(attributes)
            _call(_MOUNT_SETATTR, tree, b"", _EMPTY_PATH, ctypes.byref(attributes), ctypes.c_size_t(size))
            _call(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_EMPTY_PATH)
        finally:
            os.close(tree)
    except OSError as error:
        raise HostError(
            f"{source} cannot be mounted on {target} with its owners mapped: {error.strerror}",
            fix="use Linux 5.19 or newer, and TARE_HOME on ext4, xfs or btrfs",
        ) from error


def _call(number: int, *arguments: object) -> int:
    result: int = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
