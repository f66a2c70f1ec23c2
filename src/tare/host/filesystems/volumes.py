"""How much of the host's disk an instance may take: a filesystem of its own, or a limit that is watched.

The way to /data of a platform's users is a folder of the host's. A filesystem of its own, in a file on a loop device,
bounds an instance whatever it does, and costs a layer of block I/O that is measured with it (docs/method.md has the
figures). So it is made on request (`--data-size`); otherwise `tare.campaign.instances.disk_watch` ends what takes too
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

#: What an instance may take without a volume of its own: as much as the largest disk of a machine, with its root's.
MAX_BYTES = 20 << 30
#: Of what is free when it starts, so that all that are left can take some too.
MAX_SHARE = 0.6
#: Below this the overlays, the data and the campaign file may not fit.
MIN_FREE = 2 << 30
#: Below this no workload's files and no machine's root disk fit.
MIN_VOLUME = 2 << 30
#: A tree that takes longer to count counts as more than it may have.
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
        """Whether it is more than the limit in either."""
        return self.bytes > limit.bytes or self.files > limit.files

    def part(self, share: float) -> Room:
        """A share of its bytes and of its files, both rounded down."""
        return Room(int(self.bytes * share), int(self.files * share))

    def __str__(self) -> str:
        size = f"{self.bytes / 2**30:.1f} GiB" if self.bytes >= 2**29 else f"{self.bytes / 2**20:.0f} MiB"
        return f"{size} and {self.files} files"


def least(rooms: Iterable[Room]) -> Room:
    """The smallest of each; there must be one or more."""
    amounts = list(rooms)
    return Room(min(room.bytes for room in amounts), min(room.files for room in amounts))


def most(first: Room, second: Room) -> Room:
    """The larger number of bytes and the larger number of files of the two."""
    return Room(max(first.bytes, second.bytes), max(first.files, second.files))


def free(place: Path) -> Room:
    """What users other than root may still take there; 2^62 files where the filesystem does not count them."""
    at = os.statvfs(place)
    return Room(at.f_bavail * at.f_frsize, at.f_favail if at.f_files else 1 << 62)


def top(place: Path) -> Path:
    """The highest folder of a path that is on the same filesystem: it is there for as long as that is."""
    device, highest = place.stat().st_dev, place.resolve()
    while highest.parent.stat().st_dev == device and highest != highest.parent:
        highest = highest.parent
    return highest


def allowance(place: Path) -> Room:
    """The most that an instance that starts now may take there."""
    share = free(place).part(MAX_SHARE)
    return Room(min(MAX_BYTES, share.bytes), share.files)


def room(data: Path, size: int | None) -> int:
    """Bytes that files in an instance's data folder may take now. ``size``: of its own filesystem."""
    return free(data).bytes if size is not None else allowance(data).bytes


def bounds(folder: Path, size: int | None) -> tuple[Path, Room]:
    """Where on the host's disk an instance's files are, and the most that they may take there.

    A filesystem of its own (`make`) is one file, which takes what was written to it and keeps its size by itself.
    """
    return (folder, allowance(folder)) if size is None else (_file(folder), Room(2 * size, 1 << 20))


def taken(folders: Iterable[Path], pids: Iterable[int] = ()) -> Room | None:
    """What the trees take on their own filesystems, and files that these processes hold open and no tree has.

    None where that takes longer to count than anything honest would.
    """
    trees = [str(folder) for folder in folders if folder.exists()]
    if not trees:  # du would count where it runs
        return _unlinked(pids)
    counts = []
    for unit in ("--block-size=1", "--inodes"):
        counted = processes.run(
            ["du", "-s", "-c", "-x", unit, "--", *trees], time_limit_s=COUNT_LIMIT_S, env={"LC_ALL": "C"}
        )
        total = counted.stdout.splitlines()[-1:]  # files that vanish meanwhile are errors of du's, and no end
        if counted.timed_out or not total:
            return None
        counts.append(int(total[0].split()[0]))
    return Room(*counts) + _unlinked(pids)


def _unlinked(pids: Iterable[int]) -> Room:
    """Files without a name, which go when their processes do."""
    sizes: dict[tuple[int, int], int] = {}
    for pid in pids:
        for descriptor in process_table.descriptors(pid):
            with contextlib.suppress(OSError):
                file = descriptor.stat()
                if file.st_nlink == 0:
                    sizes[file.st_dev, file.st_ino] = file.st_blocks * 512
    return Room(sum(sizes.values()), len(sizes))


def upper_folders(pids: Sequence[int]) -> set[Path]:
    """Where what these processes write to their root goes, when that is an overlay of somebody else's: Docker's."""
    folders: set[Path] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            folders.update(Path(mount.upper) for mount in mounts.table(pid) if mount.point == "/" and mount.upper)
    return {folder for folder in folders if folder.is_absolute() and folder.is_dir()}


def make(cleanup: CleanupStack, place: Path, size: int) -> None:
    """Mount a filesystem of this size, in bytes, on a folder. It lies in a sparse file beside that; all is owned."""
    file = _file(place)
    cleanup.own(removers.file(file), removers.loop(file), removers.mount(place))
    # Nothing is left to be done in the background: the file is all zeros, and the kernel need not make it so.
    option, prepared = ext4.AT_ONCE
    result = ext4.make(file, size, "-m", "0", option, f"{prepared},assume_storage_prezeroed=1")
    result.require(fix=distribution.install("e2fsprogs"))
    # Past the host's page cache, which would else keep all data twice.
    attach = [*processes.WITH_TARE, "losetup", "--find", "--show", "--direct-io=on", str(file)]
    device = processes.run(attach).require(fix="modprobe loop").text.strip()
    mounts.mount("ext4", place, source=device, flags=mounts.NO_SUID | mounts.NO_DEV)


def _file(place: Path) -> Path:
    return place.with_name(f"{place.name}.volume")


def described(folder: Path, size: int | None) -> str:
    """What an instance's /data lies on, and what bounds it: for the manifest."""
    if size is not None:
        below = mounts.filesystem(folder.parent)
        return f"ext4 of {size / 2**30:.1f} GiB on a loop device of its own over the host's {below}"
    return f"a folder on the host's {mounts.filesystem(folder)}, watched: ended beyond {MAX_BYTES >> 30} GiB"


def check_size(size: int | None, place: Path) -> None:
    """Raise `HostError` for a volume (None: there is none) that holds nothing, or that does not fit on this disk."""
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
