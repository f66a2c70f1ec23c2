"""Tars from untrusted sources, such as a lab or another machine: unpacked within stated limits.

Most hold only plain files and folders. A root filesystem has links, owners and devices too, but all that is created
stays below its folder, whatever the archive says.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from tare.host import own_namespaces
from tare.host.kernel import beneath, removal

#: Members of one archive.
MAX_MEMBERS = 100_000
#: Limit of one read. Contents are copied in smaller pieces, so only a header of that length needs more.
_MAX_READ_BYTES = 16 << 20
#: Devices that a root filesystem may have: they read and write nothing of the host's.
_DEVICES = {(5, 1), (1, 7), (1, 3), (5, 2), (1, 8), (5, 0), (1, 9), (1, 5)}
#: In a layer, a name with this prefix removes an entry of lower layers; the second name removes all entries of its
#: folder.
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_XATTR, _CAPABILITY = "SCHILY.xattr.", "security.capability"
#: Debian's own users and groups are below it.
_MAX_ID = 1 << 16
#: Errors caused only by an archive with names outside of it, or with duplicate names.
_STRANGE = {errno.EEXIST, errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EXDEV, errno.ENAMETOOLONG, errno.EINVAL}


class _Bounded:
    """A file with a limit of bytes in total and in one read, with the methods that tarfile needs."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self._left = most

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_READ_BYTES:
            raise tarfile.ReadError(f"{size} bytes at once, which no archive of ours has")
        self._left -= size
        if self._left < 0:
            raise tarfile.ReadError("it is larger than it may be")
        return self._file.read(size)

    def seek(self, place: int, whence: int = 0) -> int:
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return self._file.seekable()


def members(file: IO[bytes], most: int) -> Iterator[tuple[PurePosixPath, IO[bytes] | None]]:
    """Yield name and contents (None: a folder) of each plain file and folder with a place of its own; skip the rest.

    ``file`` is uncompressed. At most ``most`` bytes of it are read, and no holes are filled, so the result is never
    larger. Raises `tarfile.TarError` beyond that, and for more than `MAX_MEMBERS`.
    """
    with opened(file, most) as tar:
        for member in _bounded(tar):
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts:
                continue
            if member.isdir():
                yield name, None
            elif member.isfile() and (contents := tar.extractfile(member)) is not None:
                with contents:
                    yield name, contents


def unpack_root(file: IO[bytes], folder: Path, most: int, most_members: int | None = None) -> None:
    """Unpack a tar with a root filesystem into an empty folder that nobody else can change.

    Links are created and never followed; owners, modes, file capabilities and the eight harmless devices are kept. Root
    of a user namespace cannot create devices; platforms that run there bring their own, so these are left out. Anything
    else is refused, as are names outside of the folder, names below a link, and duplicate names. Limits are ``most``
    bytes, and ``most_members`` (None: `MAX_MEMBERS`). The folder's own entry is skipped. Raises `tarfile.TarError`, and
    `OSError` if the disk or the rights do not suffice.
    """
    top = os.open(folder, beneath.FOLDER)
    dated: list[tuple[str, int]] = []
    try:
        with opened(file, most) as tar:
            for member in _bounded(tar, most_members):
                if member.name == ".":
                    continue
                if _is_harmless(member) and own_namespaces.inside():
                    continue
                with _refused(member):
                    _make(top, tar, member)
                dated.append((member.name, int(member.mtime)))
        for name, seconds in reversed(dated):  # Last, and folders after their contents.
            with _parent(top, name) as (above, last):
                os.utime(last, (seconds, seconds), dir_fd=above, follow_symlinks=False)
    finally:
        os.close(top)


def unpack_layer(file: IO[bytes], folder: Path, most: int) -> None:
    """Unpack a layer of an OCI image over lower layers in a folder that nobody else can change.

    ``file`` is uncompressed, and read twice. An entry named by a whiteout is removed, unless it is this layer's own. An
    existing entry is replaced, or stays if both are folders. Missing folders above a member are created. Otherwise like
    `unpack_root`.
    """
    top = os.open(folder, beneath.FOLDER)
    dated: list[tuple[str, int]] = []
    try:
        # Whiteouts first, because they concern lower layers wherever they are in the tar.
        with opened(file, most) as tar:
            for member in _bounded(tar):
                with _refused(member):
                    _white_out(top, member.name)
        file.seek(0)
        with opened(file, most) as tar:
            for member in _bounded(tar):
                name = PurePosixPath(member.name)
                if name.name.startswith(_WHITEOUT) or not (name.parts or member.name.startswith("/")):
                    continue
                with _refused(member):
                    _make_way(top, member)
                    _make(top, tar, member, over=True)
                dated.append((member.name, int(member.mtime)))
        for path, seconds in reversed(dated):
            with contextlib.suppress(FileNotFoundError), _parent(top, path) as (above, last):
                os.utime(last, (seconds, seconds), dir_fd=above, follow_symlinks=False)
    finally:
        os.close(top)


def _white_out(top: int, path: str) -> None:
    """Remove what a whiteout names from its folder: one entry, or all. Skip other names."""
    name = PurePosixPath(path).name
    if not name.startswith(_WHITEOUT):
        return
    entry = name.removeprefix(_WHITEOUT)
    if entry in {"", ".", ".."}:
        raise tarfile.ReadError(f"{path!r} removes an entry outside of its folder")
    with contextlib.suppress(FileNotFoundError), _parent(top, path) as (above, _):
        listed = os.open(".", beneath.FOLDER, dir_fd=above)
        try:
            for doomed in os.listdir(listed) if name == _OPAQUE else [entry]:  # noqa: PTH208 (of a descriptor)
                removal.remove_in(listed, doomed)
        finally:
            os.close(listed)


def _make_way(top: int, member: tarfile.TarInfo) -> None:
    """Create the folders above a member, and remove an existing entry, except a folder for a folder."""
    parts = PurePosixPath(member.name).parts
    for depth in range(1, len(parts)):
        with contextlib.suppress(FileExistsError), _parent(top, "/".join(parts[:depth])) as (above, last):
            os.mkdir(last, 0o755, dir_fd=above)
    with _parent(top, member.name) as (above, last):
        try:
            there = os.lstat(last, dir_fd=above)
        except FileNotFoundError:
            return
        if not (member.isdir() and stat.S_ISDIR(there.st_mode)):
            listed = os.open(".", beneath.FOLDER, dir_fd=above)
            try:
                removal.remove_in(listed, last)
            finally:
                os.close(listed)


@contextlib.contextmanager
def _refused(member: tarfile.TarInfo) -> Iterator[None]:
    """Convert errors that only an archive causes to `tarfile.ReadError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _STRANGE:
            raise
        raise tarfile.ReadError(f"{member.name!r} cannot be below it: {error.strerror}") from error


def opened(file: IO[bytes], most: int) -> tarfile.TarFile:
    """Open a tar of which at most ``most`` bytes are read, and few at once, whatever its headers say."""
    return tarfile.open(fileobj=_Bounded(file, most), mode="r:")  # type: ignore[call-overload,no-any-return]


def _bounded(tar: tarfile.TarFile, most: int | None = None) -> Iterator[tarfile.TarInfo]:
    most = MAX_MEMBERS if most is None else most
    for number, member in enumerate(tar):
        if number == most:
            raise tarfile.ReadError(f"it has more than {most} members")
        if member.issparse():
            raise tarfile.ReadError("it has a file with holes in it")
        yield member


@contextlib.contextmanager
def _parent(top: int, path: str) -> Iterator[tuple[int, str]]:
    """Yield the folder of an archive's name, opened below ``top`` without following a link, and the last part."""
    parts = PurePosixPath(path).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise tarfile.ReadError(f"it has the name {path!r}, which is not below it")
    flags = os.O_PATH | os.O_DIRECTORY
    above = beneath.opened(top, "/".join(parts[:-1]), flags) if parts[1:] else os.dup(top)
    try:
        yield above, parts[-1]
    finally:
        os.close(above)


def _make(top: int, tar: tarfile.TarFile, member: tarfile.TarInfo, *, over: bool = False) -> None:
    if not (0 <= member.uid < _MAX_ID and 0 <= member.gid < _MAX_ID):
        raise tarfile.ReadError(f"{member.name!r} belongs to user {member.uid} and group {member.gid}")
    with _parent(top, member.name) as (above, last):
        if member.islnk():
            with _parent(top, member.linkname) as (beside, other):
                os.link(other, last, src_dir_fd=beside, dst_dir_fd=above, follow_symlinks=False)
        elif member.issym():
            os.symlink(member.linkname, last, dir_fd=above)
            os.chown(last, member.uid, member.gid, dir_fd=above, follow_symlinks=False)
        else:
            descriptor = _new(above, last, member, over=over)
            try:
                contents = tar.extractfile(member) if member.isfile() else None
                if contents is not None:
                    with contents, os.fdopen(os.dup(descriptor), "wb") as written:
                        shutil.copyfileobj(contents, written)
                _finish(descriptor, member)
            finally:
                os.close(descriptor)


def _new(above: int, name: str, member: tarfile.TarInfo, *, over: bool) -> int:
    """Return a descriptor of the new file, folder or device of a member; ``over``: a folder may already exist."""
    if member.isdir():
        with contextlib.suppress(FileExistsError) if over else contextlib.nullcontext():
            os.mkdir(name, dir_fd=above)
        return beneath.opened(above, name, beneath.FOLDER)
    if member.isfile():
        return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=above)
    if not _is_harmless(member):
        raise tarfile.ReadError(f"{member.name!r} is no file, folder, link or harmless device")
    os.mknod(name, stat.S_IFCHR | 0o600, os.makedev(member.devmajor, member.devminor), dir_fd=above)
    return beneath.opened(above, name, os.O_PATH)  # Not opened as a device, which may have side effects.


def _is_harmless(device: tarfile.TarInfo) -> bool:
    return device.ischr() and (device.devmajor, device.devminor) in _DEVICES


def _finish(descriptor: int, member: tarfile.TarInfo) -> None:
    """Set its owner, mode and capabilities, in this order: a new owner clears the others."""
    # By its name in /proc, which an O_PATH descriptor has too.
    place = f"/proc/self/fd/{descriptor}"
    os.chown(place, member.uid, member.gid)
    Path(place).chmod(member.mode & 0o7777)
    for name, value in member.pax_headers.items():
        if not name.startswith(_XATTR):
            continue
        if name != _XATTR + _CAPABILITY or not member.isfile():
            raise tarfile.ReadError(f"{member.name!r} has the attribute {name.removeprefix(_XATTR)}")
        os.setxattr(place, _CAPABILITY, value.encode(errors="surrogateescape"))
