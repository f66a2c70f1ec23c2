"""The folder for tare's own files on a host: ``TARE_HOME``, by default ``/var/lib/tare``; without root, the user's own.

It is its owner's alone: root runs programs and removes folders by what is in it, and in the trees of instances are
set-user-ID files that guests made.
"""

from __future__ import annotations

import grp
import itertools
import os
import pwd
import stat
from pathlib import Path

from tare.errors import HostError
from tare.host import own_namespaces

DEFAULT_HOME = Path("/var/lib/tare")
JOURNAL = "journal"
#: The user that files of users without a number in this user namespace seem to belong to (kernel.overflowuid).
OVERFLOW = 65534
#: What tare has in there. A folder with nothing else is tare's own, and may be closed to other users.
CONTENTS = {
    "bin", "bpf", "calibration", "calibration.json", "cluster", "dockerd", "fleet", "guest", "images", JOURNAL, "key",
    "lab", "libvirt", "lock", "lost+found", "remote", "rootless", "tries", "work",
}  # fmt: skip
#: What overlayfs, container engines and QEMU part names at, or hide the next character with.
_PARTING = frozenset(":,\\")

_closed: list[Path] = []


def home() -> Path:
    """Return the folder of everything below, its owner's alone; made when it is missing, without its symlinks.

    Raises `HostError` when it cannot be written, and when another user could change what is in it. One that others can
    only read, as tare up to November 2026 made it, is closed to them (`closed`).
    """
    folder = home_if_any()
    _require_plain(folder)
    try:
        missing = itertools.takewhile(lambda above: not above.exists(), folder.absolute().parents)
        for above in reversed(list(missing)):
            above.mkdir(exist_ok=True, mode=0o755)  # by many users' umask, 002, their groups could write it
        folder.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise _unwritable(folder, error.strerror or str(error)) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
        raise _unwritable(folder, "its filesystem is mounted read-only" if read_only else "permission denied")
    _refuse_others(folder)
    _require_plain(folder.resolve())
    return folder.resolve()


def _require_plain(folder: Path) -> None:
    """Raise `HostError` for a path that runtimes and engines cannot be given.

    Their JSON is UTF-8. A colon, a comma or a backslash ends a name, or hides the next character, in what overlayfs,
    container engines and QEMU take as a list.
    """
    parting = sorted({character for character in str(folder) if character in _PARTING})
    if parting:
        raise HostError(
            f"TARE_HOME {folder} has {' and '.join(parting)} in its path, where overlayfs and engines end a name",
            fix="set TARE_HOME to a folder whose whole path has no colon, comma or backslash",
        )
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise HostError(
            f"TARE_HOME {folder} is not UTF-8", fix="set TARE_HOME to a folder whose whole path is"
        ) from error


def closed() -> list[Path]:
    """Return the homes that this process found open to other users' eyes, and closed."""
    return list(_closed)


def _refuse_others(folder: Path) -> None:
    """Raise `HostError` when another user owns or can write the folder, one above it, or a link that leads there."""
    named, place = folder.absolute(), folder.resolve()
    mine = {0, os.geteuid()}
    if own_namespaces.inside():
        # Root of the host has no number in here. The user's own process has checked the same folder before.
        mine.add(OVERFLOW)
    for link in (path for path in (named, *named.parents) if path.is_symlink()):
        if link.lstat().st_uid not in mine:
            raise _of_others(folder, f"the link {link} belongs to {_user(link.lstat().st_uid)}")
    for above in place.parents:
        status = above.stat()
        if status.st_uid not in mine:
            raise _of_others(folder, f"{above} belongs to {_user(status.st_uid)}")
        if _others_can_write(status):
            raise _of_others(folder, f"others can write {above} (mode {stat.S_IMODE(status.st_mode):o})")
    status = place.stat()
    if status.st_uid != os.geteuid():
        raise _of_others(folder, f"it belongs to {_user(status.st_uid)}")
    if status.st_mode & 0o022:
        raise _of_others(folder, f"others can write it (mode {stat.S_IMODE(status.st_mode):o})")
    if status.st_mode & 0o055:
        _close(folder, place)


def _others_can_write(above: os.stat_result) -> bool:
    """Return True if others can exchange a folder's contents. A group whose only member is the user counts as the user.

    Debian 13 and Fedora give users such a group, and the umask 002. Debian's sshd judges alike (``StrictModes``).
    """
    if above.st_mode & stat.S_ISVTX:
        return False
    return bool(above.st_mode & 0o002) or bool(above.st_mode & 0o020 and not _is_own_group(above.st_gid))


def _is_own_group(gid: int) -> bool:
    if own_namespaces.inside():
        return gid == 0  # the user's, and his own process has checked the same folder before
    try:
        user, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid).gr_mem
    except KeyError:
        return False
    members = [*members, *(entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == gid)]
    return gid == user.pw_gid and set(members) == {user.pw_name}


def _close(folder: Path, place: Path) -> None:
    if strange := sorted({entry.name for entry in place.iterdir()} - CONTENTS):
        raise HostError(
            f"{folder} can be read by others, and {strange[0]} in it is not tare's",
            fix=f"set TARE_HOME to a folder of its own, or chmod 700 {folder}",
        )
    place.chmod(0o700)
    _closed.append(folder)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def home_if_any() -> Path:
    """Return the folder of everything below, without making or checking it as `home` does."""
    named = os.environ.get("TARE_HOME") or (DEFAULT_HOME if os.geteuid() == 0 else _users_home())
    return Path(named).absolute()  # children run in another folder


def _users_home() -> Path:
    """By the XDG Base Directory Specification, in which a path that is not absolute counts as none."""
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    try:
        return (data if data.is_absolute() else Path.home() / ".local" / "share") / "tare"
    except RuntimeError as error:  # of pathlib
        raise HostError(
            f"user {os.geteuid()} has no home folder: HOME is not set, and no account has this number",
            fix="set TARE_HOME to a folder of yours",
        ) from error


def images() -> Path:
    """Return cached images, by hash."""
    return _below("images")


def tries() -> Path:
    """Return what tries showed, of KVM for instance, by what was tried."""
    return _below("tries")


def work() -> Path:
    """Folders of running instances; empty when no campaign runs."""
    return _below("work")


def journal() -> Path:
    """Return what tare made on the host and has not removed yet."""
    return _below(JOURNAL, mode=0o700)


def _below(name: str, mode: int = 0o777) -> Path:
    folder = home() / name
    folder.mkdir(exist_ok=True, mode=mode)
    return folder


def _of_others(folder: Path, why: str) -> HostError:
    return HostError(
        f"{folder} is not safe from other users: {why}",
        fix="set TARE_HOME to a folder that is yours alone, below folders that only you or root can write",
    )


def _unwritable(folder: Path, why: str) -> HostError:
    as_root = "run as root, or " if os.geteuid() != 0 else ""
    return HostError(f"{folder} cannot be written: {why}", fix=f"{as_root}set TARE_HOME to a folder that you can write")
