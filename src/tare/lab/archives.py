"""Tars that came out of a lab, where anything may have written them: plain files and folders, within stated bounds."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO

#: Members of one archive.
MAX_MEMBERS = 100_000
#: What is read at once: contents are copied in smaller pieces, and so only a header of that length wants more.
_LONGEST_READ = 16 << 20


class _Bounded:
    """A file from which no more than so much is read, and not all at once; as much of a file as tarfile wants."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self._left = most

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LONGEST_READ:
            raise tarfile.ReadError(f"{size} bytes at once, which no archive of ours has")
        self._left -= size
        if self._left < 0:
            raise tarfile.ReadError("it is larger than it may be")
        return self._file.read(size)

    def seek(self, place: int, whence: int = 0) -> int:
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()


def members(file: IO[bytes], most: int) -> Iterator[tuple[PurePosixPath, IO[bytes] | None]]:
    """Name and contents (None: a folder) of each plain file and folder with a place of its own; nothing else is seen.

    ``file`` is uncompressed; no more than ``most`` bytes are read of it, and no holes are filled: what comes out is
    never larger. Raises `tarfile.TarError` beyond that, and for more than `MAX_MEMBERS`.
    """
    with tarfile.open(fileobj=_Bounded(file, most), mode="r:") as tar:  # type: ignore[call-overload]
        for number, member in enumerate(tar):
            if number == MAX_MEMBERS:
                raise tarfile.ReadError(f"it has more than {MAX_MEMBERS} members")
            if member.issparse():
                raise tarfile.ReadError("it has a file with holes in it")
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts:
                continue
            if member.isdir():
                yield name, None
            elif member.isfile() and (contents := tar.extractfile(member)) is not None:
                with contents:
                    yield name, contents
