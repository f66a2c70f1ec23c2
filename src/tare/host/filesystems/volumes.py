"""Limits of an instance's disk use: a filesystem of its own, or a limit that is watched.

Platforms' users usually have a folder of the host's as /data. A filesystem of its own, in a file on a loop device,
limits an instance in any case, but adds a layer of block I/O to the measurement (docs/method.md has the figures). So it
is made on request (`--data-size`); otherwise `tare.campaign.instances.disk_watch` stops an instance that takes too
much.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostError
from tare.host import distribution, processes
from tare.host.filesystems import ext4
from tare.host.kernel import mounts, process_table
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack

#: Limit of an instance without a volume of its own: the size of a machine's largest disk, with its root's.
MAX_BYTES = 20 << 30
#: Share of the free space at its start, so that all others can take some too.
MAX_SHARE = 0.6
#: Below this the overlays, the data and the campaign file may not fit.
MIN_FREE = 2 << 30
#: Below this no workload's files and no machine's root disk fit.
MIN_VOLUME = 2 << 30
#: A tree that takes longer to count is treated as above its limit.
COUNT_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Room:
    """An amount of a filesystem: bytes, and files of any kind."""

    bytes: int
    files: int

    def __add__(self, other: Room) -> Room:
        return Room(self.bytes + other.bytes, self.files + other.files)

    def __sub__(self, other: Room) -> Room:
        return Room(self.bytes - other.bytes, self.files - other.files)

    def beyond(self, limit: Room) -> bool:
        """Return True if it is more than the limit in either."""
        return self.bytes > limit.bytes or self.files > limit.files

    def part(self, share: float) -> Room:
        """Return a share of its bytes and of its files, both rounded down."""
        return Room(int(self.bytes * share), int(self.files * share))

    def __str__(self) -> str:
        size = f"{self.bytes / 2**30:.1f} GiB" if self.bytes >= 2**29 else f"{self.bytes / 2**20:.0f} MiB"
        return f"{size} and {self.files} files"


def least(rooms: Iterable[Room]) -> Room:
    """Return the smallest of each; there must be at least one."""
    amounts = list(rooms)
    return Room(min(room.bytes for room in amounts), min(room.files for room in amounts))


def most(first: Room, second: Room) -> Room:
    """Return the larger number of bytes and the larger number of files of the two."""
    return Room(max(first.bytes, second.bytes), max(first.files, second.files))


def free(place: Path) -> Room:
    """Return the room for users other than root; 2^62 files if the filesystem does not count them."""
    at = os.statvfs(place)
    return Room(at.f_bavail * at.f_frsize, at.f_favail if at.f_files else 1 << 62)


def top(place: Path) -> Path:
    """Return the highest folder of a path on the same filesystem, which exists as long as the filesystem is mounted."""
    device, highest = place.stat().st_dev, place.resolve()
    while highest.parent.stat().st_dev == device and highest != highest.parent:
        highest = highest.parent
    return highest


def allowance(place: Path) -> Room:
    """Return the most that an instance that starts now may take there."""
    share = free(place).part(MAX_SHARE)
    return Room(min(MAX_BYTES, share.bytes), share.files)


def room(data: Path, size: int | None) -> int:
    """Return the bytes that files in an instance's data folder may take now. ``size``: of its own filesystem."""
    return free(data).bytes if size is not None else allowance(data).bytes


def bounds(folder: Path, size: int | None) -> tuple[Path, Room]:
    """Return the place of an instance's files on the host's disk, and the most that they may take there.

    A filesystem of its own (`make`) is one file, which grows with writes and limits its size by itself.
    """
    return (folder, allowance(folder)) if size is None else (_file(folder), Room(2 * size, 1 << 20))


def taken(folders: Iterable[Path], pids: Iterable[int] = ()) -> Room | None:
    """Return the use of the trees on their own filesystems, with deleted files that these processes hold open.

    None if counting takes longer than for any honest tree.
    """
    trees = [str(folder) for folder in folders if folder.exists()]
    if not trees:  # du would count its current folder.
        return _unlinked(pids)
    counts = []
    for unit in ("--block-size=1", "--inodes"):
        counted = processes.run(
            ["du", "-s", "-c", "-x", unit, "--", *trees], time_limit_s=COUNT_LIMIT_S, env={"LC_ALL": "C"}
        )
        total = counted.stdout.splitlines()[-1:]  # Files that vanish meanwhile make du fail, but do not matter.
        if counted.timed_out or not total:
            return None
        counts.append(int(total[0].split()[0]))
    return Room(*counts) + _unlinked(pids)


def _unlinked(pids: Iterable[int]) -> Room:
    """Return the use of files without a name, which vanish with their processes."""
    sizes: dict[tuple[int, int], int] = {}
    for pid in pids:
        for descriptor in process_table.descriptors(pid):
            with contextlib.suppress(OSError):
                file = descriptor.stat()
                if file.st_nlink == 0:
                    sizes[file.st_dev, file.st_ino] = file.st_blocks * 512
    return Room(sum(sizes.values()), len(sizes))


def upper_folders(pids: Sequence[int]) -> set[Path]:
    """Return the folders that get these processes' writes to their root from another program's overlay: Docker's."""
    folders: set[Path] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            folders.update(Path(mount.upper) for mount in mounts.table(pid) if mount.point == "/" and mount.upper)
    return {folder for folder in folders if folder.is_absolute() and folder.is_dir()}


def make(cleanup: CleanupStack, place: Path, size: int) -> None:
    """Mount a filesystem of this size, in bytes, on a folder. It is in a sparse file beside it, and all is owned."""
    file = _file(place)
    cleanup.own(removers.file(file), removers.loop(file), removers.mount(place))
    # Leave no background work: the file is all zeros, so the kernel need not write zeros.
    option, prepared = ext4.AT_ONCE
    result = ext4.make(file, size, "-m", "0", option, f"{prepared},assume_storage_prezeroed=1")
    result.require(fix=distribution.install("e2fsprogs"))
    # Bypass the host's page cache, which would otherwise hold all data twice.
    attach = [*processes.WITH_TARE, "losetup", "--find", "--show", "--direct-io=on", str(file)]
    device = processes.run(attach).require(fix="modprobe loop").text.strip()
    mounts.mount("ext4", place, source=device, flags=mounts.NO_SUID | mounts.NO_DEV)


def _file(place: Path) -> Path:
    return place.with_name(f"{place.name}.volume")


def described(folder: Path, size: int | None) -> str:
    """Describe the storage of an instance's /data, and its limit, for the manifest."""
    if size is not None:
        below = mounts.filesystem(folder.parent)
        return f"ext4 of {size / 2**30:.1f} GiB on a loop device of its own over the host's {below}"
    return f"a folder on the host's {mounts.filesystem(folder)}, watched: ended beyond {MAX_BYTES >> 30} GiB"


def check_size(size: int | None, place: Path) -> None:
    """Raise `HostError` for a volume that is too small or does not fit on this disk. ``size``: None for no volume."""
    if size is None:
        return
    room = free(place).bytes
    if size < MIN_VOLUME:
        raise HostError(
            f"a volume of {size >> 20} MiB is too small for an instance", fix=f"give {MIN_VOLUME >> 30}G or more"
        )
    if size > room:
        problem = f"a volume of {size / 2**30:.1f} GiB does not fit on the {room / 2**30:.1f} GiB free below {place}"
        raise HostError(problem, fix="give a smaller --data-size, or set TARE_HOME to a larger disk")
