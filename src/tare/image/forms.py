"""The forms of the image that platforms need, each made once and cached beside the image's folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tare.errors import ImageError
from tare.host import processes
from tare.host.filesystems import ext4 as filesystems
from tare.image import recipe
from tare.image.build import Image

LIMIT_S = 600.0


def oci_tar(image: Image) -> Path:
    """A tar of the root filesystem, as ``docker import`` and the like take it."""
    place = image.root.parent / "root.tar"
    if not place.exists():
        part = place.with_suffix(".part")
        argv = ["tar", "-C", str(image.root), *same_bytes(), "-cf", str(part), "."]
        _require(processes.run(argv, time_limit_s=LIMIT_S), part)
        part.rename(place)
    return place


def same_bytes() -> list[str]:
    """The options by which tar makes the same bytes of the same contents, whenever and wherever they were copied."""
    options = ["--sort=name", "--numeric-owner", "--one-file-system", "--xattrs"]
    options += [f"--mtime=@{recipe.load().epoch}", "--clamp-mtime", "--format=posix"]
    return [*options, "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"]


def ext4(image: Image, size_bytes: int) -> Path:
    """An ext4 filesystem with the image in it, as a sparse file of this size; made without mounting anything."""
    place = image.root.parent / f"root-{size_bytes >> 20}M.ext4"
    if not place.exists():
        needed = disk_bytes(image.root)
        if size_bytes < needed:
            raise ImageError(
                f"{size_bytes >> 20} MiB do not hold the image, which takes {needed >> 20} MiB",
                fix=f"a disk of at least {(needed * 5 // 4) >> 20} MiB",
            )
        part = place.with_suffix(".part")
        part.unlink(missing_ok=True)  # a killed build's
        _require(filesystems.make(part, size_bytes, contents=image.root), part)
        part.rename(place)
    return place


def disk_bytes(path: Path) -> int:
    """Disk space that a file or a folder's files really take; a file with several names counts once."""
    if path.is_file():
        return path.stat().st_blocks * 512
    seen: set[tuple[int, int]] = set()
    total = 0
    for folder, names, files in os.walk(path):
        for name in (*names, *files):
            facts = os.lstat(Path(folder, name))
            if (facts.st_dev, facts.st_ino) not in seen:
                seen.add((facts.st_dev, facts.st_ino))
                total += facts.st_blocks * 512
    return total


def unpacked_bytes(folder: Path) -> int:
    """The lengths of all files below a folder, as they are when unpacked; one with several names counts once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for below, _, files in os.walk(folder):
        for name in files:
            facts = os.lstat(Path(below, name))
            if stat.S_ISREG(facts.st_mode) and (facts.st_dev, facts.st_ino) not in seen:
                seen.add((facts.st_dev, facts.st_ino))
                total += facts.st_size
    return total


def _require(done: processes.Finished, part: Path) -> None:
    if done.code != 0:
        part.unlink(missing_ok=True)
        message = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise ImageError(f"{part.name} cannot be made: {message}", fix="free disk space below TARE_HOME")
