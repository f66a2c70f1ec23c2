"""Files of a folder that an instance has as its /data, by which tare and a program inside tell each other something.

Root inside may make anything of them at any moment: links to files of the host's, pipes, files without end. The folder
itself is the host's.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tare.host.kernel import beneath


def size(folder: Path, name: str) -> int:
    """Return the bytes of a regular file; 0 where there is none. One call to the kernel: it is asked all the time."""
    with contextlib.suppress(FileNotFoundError):
        status = os.lstat(folder / name)
        return status.st_size if stat.S_ISREG(status.st_mode) else 0
    return 0


def make(folder: Path, name: str) -> None:
    """Make an empty file. Raises `FileExistsError` where something has its name, also a link to nowhere."""
    with _opened(folder) as top:
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=top))


def read(folder: Path, name: str, most: int) -> bytes:
    """Return the first bytes of a regular file, at most ``most``; b"" where there is none."""
    with _opened(folder) as top:
        file = beneath.regular(top, name)
    if file is None:
        return b""
    with os.fdopen(file, "rb") as opened:
        return opened.read(most)


def copy(folder: Path, to: Path, name: str, most: int) -> bool:
    """Copy a regular file to another folder, where nothing may have its name; return False if it is larger."""
    contents = read(folder, name, most + 1)
    if len(contents) > most:
        return False
    with (to / name).open("xb") as written:
        written.write(contents)
    return True


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    top = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield top
    finally:
        os.close(top)
