"""Removal of a folder with everything that a sandbox has made in it, at any depth and in any number.

tare's own code, because the usual ways fail. `shutil.rmtree` of Python 3.11 recurses, and fails at a thousand nested
folders. ``rm -rf --one-file-system`` does not recognize a bind mount of the same filesystem, and does not clear
attributes (chattr(1)). Here no mount is ever crossed, an error affects only its own entry, and all remaining entries
are reported.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from tare.errors import HostError
from tare.host.kernel import beneath

#: Limit of passes. A pass that removes something is followed by another, because the writing processes may still be
#: ending.
PASSES = 10
#: ioctl(2) of a file's attributes, and the attributes that prevent removal (linux/fs.h).
_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
_IMMUTABLE, _APPEND_ONLY = 0x10, 0x20


def remove(path: Path) -> None:
    """Remove a folder and everything in it, or a file, if it exists. Leave the contents of mounts in it untouched.

    The folders above are tare's own, or root's. Raises `HostError` with the number of entries that stayed, and the
    first of them.
    """
    try:
        parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        for _ in range(PASSES):
            turn = _Pass()
            turn.take(parent, path.name)
            if not turn.removed or not _exists(parent, path.name):
                break
        if _exists(parent, path.name):
            raise HostError(f"{path} cannot be removed: {turn.stayed or 'it is filled again all the time'}")
    finally:
        os.close(parent)


def remove_in(folder: int, name: str) -> None:
    """Remove an entry of an open folder, like `remove`, if nobody else writes there. Raises `HostError`."""
    turn = _Pass()
    turn.take(folder, name)
    if _exists(folder, name):
        raise HostError(f"{name!r} cannot be removed: {turn.stayed}")


def _exists(folder: int, name: str) -> bool:
    with contextlib.suppress(FileNotFoundError):
        os.lstat(name, dir_fd=folder)
        return True
    return False


class _Pass:
    """One pass through a tree."""

    def __init__(self) -> None:
        self.removed = 0
        self._stayed = 0
        self._first = ""

    @property
    def stayed(self) -> str:
        """Describe what could not be removed; "" if all is gone."""
        return f"{self._first}{f' (and {self._stayed - 1} more)' if self._stayed > 1 else ''}"

    def take(self, parent: int, name: str) -> None:
        """Remove an entry of an open folder."""
        try:
            top = os.open(name, beneath.FOLDER, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError:  # The entry is a file or a link.
            self._gone(os.unlink, parent, name)
            return
        try:
            beneath.walk(top, self._enter, self._leave)
        finally:
            os.close(top)
        self._leave(parent, name)

    def _enter(self, folder: int) -> list[str]:
        """Remove all files, and empty folders. Return the names of the folders still to visit."""
        below: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        try:
                            os.rmdir(entry.name, dir_fd=folder)
                            self.removed += 1
                        except OSError:
                            below.append(entry.name)
                    else:
                        self._gone(os.unlink, folder, entry.name)
        except OSError as error:
            self._note(error)
        return below

    def _leave(self, folder: int, name: str) -> None:
        self._gone(os.rmdir, folder, name)

    def _gone(self, call: Callable[..., None], folder: int, name: str) -> None:
        """Remove one entry, after clearing its attributes if they prevent that."""
        try:
            try:
                call(name, dir_fd=folder)
            except PermissionError:
                _release(folder, name)
                call(name, dir_fd=folder)
            self.removed += 1
        except FileNotFoundError:
            pass
        except OSError as error:
            # The contents of a folder that is not empty are already reported. An entry that became a folder is for the
            # next pass.
            if error.errno not in {errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR}:
                self._note(error)

    def _note(self, error: OSError) -> None:
        self._stayed += 1
        shown = f"{os.fsdecode(error.filename)!r}: " if error.filename else ""
        self._first = self._first or f"{shown}{error.strerror}"


def _release(folder: int, name: str) -> None:
    """Clear the attributes of an entry, and of its folder, that prevent its removal."""
    _without_attributes(folder)
    descriptor = beneath.regular(folder, name)
    if descriptor is None:
        with beneath.unless_vanished():
            descriptor = beneath.opened(folder, name, beneath.FOLDER)
    if descriptor is not None:
        try:
            _without_attributes(descriptor)
        finally:
            os.close(descriptor)


def _without_attributes(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # Some filesystems have no attributes.
        flags = int.from_bytes(fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8))[:4], "little")
        if flags & (_IMMUTABLE | _APPEND_ONLY):
            remaining = flags & ~(_IMMUTABLE | _APPEND_ONLY)
            fcntl.ioctl(descriptor, _SET_FLAGS, remaining.to_bytes(8, "little"))
