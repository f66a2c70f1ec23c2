"""Walks over control groups that root in a sandbox may have made: nested, frozen, throttled, removed meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tare.host.kernel import beneath

#: Value for no limit, in v2 and in the controller ``pids``.
UNLIMITED = "max"
#: Files by which root in a sandbox can make processes of its group outlive SIGKILL indefinitely, with the value that
#: undoes it: v1's freezer, and CPU quotas too small to end with. v2's freezer lets killed processes go.
_RELEASES: Mapping[str, bytes] = {
    "freezer.state": b"THAWED",
    "cgroup.freeze": b"0",
    "cpu.cfs_quota_us": b"-1",
    "cpu.max": UNLIMITED.encode(),
}
#: The same for limits by device, each a line that begins with the device's number: a process that waits for a disk is
#: not killed.
_THROTTLES: Mapping[str, bytes] = {
    **{f"blkio.throttle.{way}_{what}_device": b" 0" for way in ("read", "write") for what in ("bps", "iops")},
    "io.max": b" rbps=max wbps=max riops=max wiops=max",
}


def held_back(top: Path) -> bool:
    """Return True if a group below has a block that `release` removes. The top's own quota was set by tare."""
    own: dict[str, bytes] | None = None
    held = False

    def read(group: int) -> None:
        nonlocal own, held
        values: dict[str, bytes] = {}
        for name in (*_RELEASES, *_THROTTLES):
            with unless_removed():
                values[name] = contents(group, name)
        own = values if own is None else own
        held |= any(values.get(name, b"").strip() for name in _THROTTLES)
        for name, free in _RELEASES.items():
            held |= name in values and values[name].split()[0] != free and values[name] != own.get(name)

    walk(top, read, lambda *_: None)
    return held


def release(group: int) -> None:
    """Release the processes of a group that is frozen, or has no CPU or disk time left to end in."""
    for name, words in _RELEASES.items():
        with unless_removed():
            put(group, name, words)
    for name, words in _THROTTLES.items():
        with unless_removed():
            for device, *_ in filter(None, map(bytes.split, contents(group, name).splitlines())):
                put(group, name, device + words)


def remove_tree(folder: Path) -> None:
    """Remove a group and all below, as far as they are not busy."""
    empty(folder)
    with contextlib.suppress(OSError):
        folder.rmdir()


def empty(folder: Path) -> None:
    """Remove all groups below, as far as they are not busy."""

    def leave(above: int, name: str) -> None:
        # A killed process is not gone yet, so the group is busy; the caller retries.
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=above)

    walk(folder, lambda _: None, leave)


def pids(folders: Iterable[Path]) -> set[int]:
    """Return all processes in these groups and below."""
    members: set[int] = set()

    def read(group: int) -> None:
        with unless_removed():
            members.update(map(int, contents(group, "cgroup.procs").split()))

    for folder in folders:
        walk(folder, read, lambda *_: None)
    return members - {0}  # 0: a process of a foreign pid namespace.


def contents(group: int, name: str) -> bytes:
    """Return what is in a file of an open group."""
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=group), "rb") as file:  # noqa: PTH123 (a descriptor)
        return file.read()


def put(group: int, name: str, words: bytes) -> None:
    """Write to a file of an open group."""
    with open(os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=group), "wb", buffering=0) as file:  # noqa: PTH123
        file.write(words)


def walk(folder: Path, enter: Callable[[int], object], leave: Callable[[int, str], object]) -> None:
    """Run `beneath.walk` over groups: root in a sandbox may nest them deeper than the longest path."""

    def below(group: int) -> list[str]:
        enter(group)
        with unless_removed(), os.scandir(group) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        return []

    with contextlib.suppress(FileNotFoundError):
        top = os.open(folder, beneath.FOLDER)
        try:
            beneath.walk(top, below, leave)
        finally:
            os.close(top)


@contextlib.contextmanager
def unless_removed() -> Iterator[None]:
    """Ignore the errors of a removed group, and of a threaded group, whose processes are listed above it.

    Any other error would hide the processes in the group.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP}:
            raise
