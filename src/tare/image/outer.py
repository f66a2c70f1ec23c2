"""The small system of a guest that itself hosts a container platform: programs of this host, on one disk.

The programs come with their shared libraries, at this host's paths, and with the modules of the guest's kernel that
they need. A static busybox is the rest of the userland. The disk is cached by the hash of its contents.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from tare.errors import ImageError
from tare.host import distribution, libraries, processes, state
from tare.host.filesystems import ext4
from tare.image import guest

#: Room for a platform's writes to the disk while it runs.
SPARE_BYTES = 256 << 20
FOLDERS = ("bin", "data", "dev", "etc", "image", "modules", "proc", "root", "run", "sys", "tmp", "var")
LIMIT_S = 120.0


@functools.cache
def ensure(programs: Sequence[str], modules: Sequence[str] = ()) -> Path:
    """Return the disk (ext4) with these programs of this host, from the cache or newly made. Raises `ImageError`.

    A program is a name on PATH, or a file's path. ``modules``: of the guest's kernel; their dependencies are added.
    """
    busybox = guest.busybox_path()
    init = resources.files("tare.image").joinpath("outer.sh").read_bytes()
    files = {file: Path(file).read_bytes() for program in programs for file in with_libraries(located(program))}
    needed = guest.with_needed(modules) if modules else []
    names = " ".join((*sorted(files), "modules", *(str(module) for module in needed)))
    digest = hashlib.sha256(
        names.encode() + init + busybox.read_bytes() + b"".join(files[file] for file in sorted(files))
    )
    disk_file = state.home() / "guest" / f"outer-{digest.hexdigest()[:16]}.ext4"
    if not disk_file.exists():
        with tempfile.TemporaryDirectory(dir=disk_file.parent) as scratch:
            tree = Path(scratch, "tree")
            _fill(tree, init, busybox, files, needed)
            disk(tree, Path(scratch, "disk"), sum(map(len, files.values())) + SPARE_BYTES).rename(disk_file)
    return disk_file


def located(program: str) -> str:
    """Return the path of a program on this host. Raises `ImageError`."""
    place = processes.find(program)
    if place is None and not Path(program).is_file():
        raise ImageError(f"{program} is not installed", fix=distribution.owner(program))
    return place or program


def with_libraries(program: str) -> list[str]:
    """Return a program and its shared libraries, by the paths that this host's loader uses. Raises `ImageError`."""
    files = [program]
    for name, file in libraries.linked(program).items():
        if file is None:
            raise ImageError(f"{program} does not run: its library {name} is missing", fix=f"reinstall {program}")
        files.append(file)
    return files


def disk(tree: Path, place: Path, size_bytes: int) -> Path:
    """Create an ext4 filesystem with a folder's contents, in a sparse file. Raises `ImageError`."""
    # Without a journal, because a guest's writes to it are discarded.
    done = ext4.make(place, (size_bytes >> 20) + 1 << 20, "-O", "^has_journal", contents=tree)
    if done.code != 0:
        raise ImageError(
            f"the outer system's disk cannot be made: {done.message}", fix="free disk space below TARE_HOME"
        )
    return place


def _fill(tree: Path, init: bytes, busybox: Path, files: Mapping[str, bytes], modules: Sequence[Path]) -> None:
    for name in FOLDERS:
        (tree / name).mkdir(parents=True)
    shutil.copy(busybox, tree / "bin" / "busybox")
    for name in set(processes.run([str(busybox), "--list"]).require().text.split()) - {"busybox"}:
        (tree / "bin" / name).symlink_to("busybox")
    (tree / "init").write_bytes(init)
    (tree / "init").chmod(0o755)
    for file, contents in files.items():
        place = tree / file.removeprefix("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)  # Busybox may have a link by that name.
        place.write_bytes(contents)
        place.chmod(0o755)
    guest.put_modules(modules, tree / "modules")
    (tree / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (tree / "etc" / "group").write_text("root:x:0:\n")
    (tree / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
