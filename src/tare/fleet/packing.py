"""What is brought to a host, packed once by its contents: Python packages, tare itself with the agent, and the image.

Each is a file whose name has the hash of what is in it, so that a host which has a folder of that name needs nothing.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import tarfile
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

import tare
from tare import outputs
from tare.errors import HostError, ImageError
from tare.host import locked_packages, state
from tare.image import archive, image_build
from tare.image.build_places import locked
from tare.model import Progress

#: Changes with the way in which folders are packed.
FORMAT = 1
#: In TARE_HOME: what was packed for other hosts.
FOLDER = "fleet"
_LEVEL = 1
_PACKAGE = "tare-bench"


@dataclass(frozen=True, slots=True)
class Packed:
    """A file to bring, the folder that it becomes there, its checksum, and the bytes that it unpacks to."""

    name: str
    file: str
    sha256: str
    unpacked: int


@dataclass(frozen=True, slots=True)
class PackTarget:
    """A kind of host: packages fit one version of Python on one kind of processor."""

    python: str  # 3.11
    machine: str  # x86_64

    def __str__(self) -> str:
        return f"{self.python}-{self.machine}"


def folder() -> Path:
    """Where packed files are kept for the next fleet."""
    place = state.home() / FOLDER
    place.mkdir(exist_ok=True, mode=0o700)
    return place


def image_name() -> str:
    """Return the folder of the image that this tare's campaigns take, below ``TARE_HOME/images``."""
    return image_build.base_place().name


def packed_for(target: PackTarget, progress: Progress) -> dict[str, Any]:
    """Pack the needs of a kind of host, without the image. Raises `HostError` if this tare cannot serve it."""
    machine = os.uname().machine
    if target.machine != machine:
        raise HostError(
            f"it is {target.machine}, and this tare's agent is for {machine}",
            fix=f"run the fleet's {target.machine} hosts from a {target.machine} machine",
        )
    own = "{}.{}".format(*sys.version_info)
    with locked(folder(), progress, "the fleet's files"):
        packages = _packages(target, own, progress)
        return {"packages": asdict(packages), "tare": asdict(_tare())}


def packed_image(progress: Progress) -> dict[str, Any]:
    """Pack the image as a file with its hash."""
    name = image_name()
    file = folder() / f"{name}.tar.zst"
    with locked(folder(), progress, "the fleet's files"):
        if not file.is_file():
            with outputs.written(file, "wb", new=True) as target:
                archive.export(target, progress)
    return asdict(Packed(name, str(file), archive.hash_of(file), 0))


def not_packed_image() -> dict[str, Any]:
    """Name the image without a file, for hosts that all have it."""
    return asdict(Packed(image_name(), "", "", 0))


def needed_distributions(name: str = _PACKAGE) -> list[str]:
    """Return the packages that tare needs to run, without its extras, by name and in order."""
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        for line in metadata.requires(current) or ():
            requirement = Requirement(line)
            key = requirement.name.lower().replace("_", "-")
            if key not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                found[key] = None
                waiting.append(key)
    return sorted(found)


def _packages(target: PackTarget, own: str, progress: Progress) -> Packed:
    names = needed_distributions()
    versions = [f"{name}=={metadata.version(name)}" for name in names]
    key = hashlib.sha256(repr((FORMAT, str(target), versions)).encode()).hexdigest()[:16]
    name = f"packages-{target}-{key}"
    if (there := _there(name)) is not None:
        return there
    progress(f"packing Python packages for Python {target.python} (some seconds)")
    if target.python == own:
        return _write(name, _files_of(names))
    with tempfile.TemporaryDirectory(dir=folder()) as scratch:
        tree = Path(scratch) / "packages"
        locked_packages.install_locked(tree, names, target.python, progress)
        return _write(name, _files_below(tree))


def _tare() -> Packed:
    """Tare's own code, with the agent as a wheel has it."""
    package = Path(tare.__file__).parent
    agent = image_build.agent_path()
    files = {f"tare/{name}": path for name, path in _files_below(package) if name != "image/tare-agent"}
    files["tare/image/tare-agent"] = agent
    info = metadata.distribution(_PACKAGE)
    for file in info.files or ():
        if file.parent.name.endswith(".dist-info") and file.name in {"METADATA", "entry_points.txt"}:
            files[f"{file.parent.name}/{file.name}"] = Path(str(info.locate_file(file)))
    files[f"tare/host/{locked_packages.LOCK}"] = locked_packages.lock_place()
    digest = hashlib.sha256(repr(FORMAT).encode())
    for name, path in sorted(files.items()):
        digest.update(f"{name}\0{path.stat().st_mode & 0o100}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    name = f"tare-{tare.__version__}-{digest.hexdigest()[:16]}"
    return _there(name) or _write(name, sorted(files.items()))


def _files_of(names: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files of installed packages, without tests and without files outside of the packages' folders."""
    for name in names:
        distribution = metadata.distribution(name)
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if not {"..", "tests"} & {*file.parts} and file.suffix != ".pyc" and path.is_file():
                yield str(file), path


def _files_below(tree: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(tree.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield str(path.relative_to(tree)), path


def _there(name: str) -> Packed | None:
    file = folder() / f"{name}.tar.gz"
    size = folder() / f"{name}.size"
    try:
        return Packed(name, str(file), archive.hash_of(file), int(size.read_text()))
    except (OSError, ValueError, ImageError):
        return None


def _write(name: str, files: Iterator[tuple[str, Path]] | list[tuple[str, Path]]) -> Packed:
    """Write a tar of the files: the same files make the same bytes."""
    unpacked = 0
    place = folder() / f"{name}.tar.gz"
    with (
        outputs.written(place, "wb") as raw,
        gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for arcname, path in sorted(files):
            info = tarfile.TarInfo(arcname)
            info.size = path.stat().st_size
            info.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            with path.open("rb") as file:
                tar.addfile(info, file)
            unpacked += -(-info.size // 4096) * 4096
    with outputs.written(folder() / f"{name}.size") as size:
        size.write(str(unpacked))
    _prune(place)
    return Packed(name, str(place), archive.hash_of(place), unpacked)


def _prune(place: Path) -> None:
    """Remove what was packed of older versions, but for the newest of it, which another fleet may bring now."""
    kind = place.name.partition("-")[0]
    older = [path for path in folder().glob(f"{kind}-*.tar.gz") if path != place]
    for path in sorted(older, key=lambda path: path.stat().st_mtime)[:-2]:
        path.unlink(missing_ok=True)
        path.with_name(path.name.removesuffix(".tar.gz") + ".size").unlink(missing_ok=True)
