"""Mounting by the system call itself.

A ``mount`` command that outlives a killed tare would mount after the cleaning has looked; a system call ends with its
caller. Python has none for it.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from tare.errors import HostError

#: mount(2)
READ_ONLY, BIND = 1, 4096
#: open_tree(2), mount_setattr(2) and move_mount(2), whose numbers are the same on all architectures; and their flags.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CLONE, _HERE, _EMPTY_PATH, _MOVE_EMPTY_PATH = 1, -100, 0x1000, 4
_ATTR_READ_ONLY, _ATTR_MAPPED = 0x1, 0x100000


def mount(kind: str, target: Path, *, source: str = "", flags: int = 0, options: str = "", fix: str = "") -> None:
    """Mount ``source`` (by default the filesystem's own name) on a folder. Raises `HostError` with ``fix``."""
    named = [os.fsencode(text) for text in (source or kind, str(target), kind, options)]
    if ctypes.CDLL(None, use_errno=True).mount(named[0], named[1], named[2], ctypes.c_ulong(flags), named[3]) != 0:
        why = os.strerror(ctypes.get_errno())
        raise HostError(f"{source or kind} cannot be mounted on {target}: {why}", fix=fix or "see what dmesg says")


class _Attributes(ctypes.Structure):
    """struct mount_attr."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "namespace"))


def mapped(source: Path, target: Path, namespace: int) -> None:
    """Show a folder or file, read-only, with its owners mapped by a user namespace (a descriptor). Raises `HostError`.

    A file of root's belongs to the namespace's root there. Since Linux 5.12; below an overlay since 5.19.
    """
    try:
        tree = _call(_OPEN_TREE, _HERE, os.fsencode(source), _CLONE | os.O_CLOEXEC)
        try:
            attributes = _Attributes(set=_ATTR_MAPPED | _ATTR_READ_ONLY, namespace=namespace)
            size = ctypes.sizeof(attributes)
            _call(_MOUNT_SETATTR, tree, b"", _EMPTY_PATH, ctypes.byref(attributes), ctypes.c_size_t(size))
            _call(_MOVE_MOUNT, tree, b"", _HERE, os.fsencode(target), _MOVE_EMPTY_PATH)
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
