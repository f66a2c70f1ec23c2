"""Forms of the image that platforms need, each built once and cached beside the image's folder."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tare.errors import ImageError
from tare.host import processes
from tare.host.filesystems import ext4 as filesystems
from tare.image import image_recipe
from tare.image.image_build import Image

LIMIT_S = 600.0
PATH_INSIDE = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OCI = "application/vnd.oci.image"
#: Images' names of machines, by the name from ``uname``.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def oci_tar(image: Image) -> Path:
    """Return a tar of the root filesystem, the input of ``docker import`` and similar commands."""
    place = image.root.parent / "root.tar"
    if not place.exists():
        part = place.with_suffix(".part")
        # All forms of a user's own image keep the times of the user's files, because make(1) compares them.
        argv = ["tar", "-C", str(image.root), *same_bytes(clamp=image.tools is None), "-cf", str(part), "."]
        _require(processes.run(argv, time_limit_s=LIMIT_S), part)
        part.rename(place)
    return place


@contextlib.contextmanager
def oci_archive(image: Image, *commands: tuple[str, Sequence[str]]) -> Iterator[Path]:
    """Write an OCI image layout as a tar, for ``ctr images import``, and remove it at the end.

    It takes as much disk space as the image.

    ``commands``: for each image in the layout, its tag and default command; all images share one layer. Raises
    `ImageError` if it cannot be written.
    """
    layer = oci_tar(image)
    with layer.open("rb") as contents:
        digest = hashlib.file_digest(contents, "sha256").hexdigest()
    blobs = {tag: _oci_image(digest, layer.stat().st_size, command) for tag, command in commands}
    manifests = [
        {**_described(manifest, "manifest"), "annotations": {"io.containerd.image.name": tag}}
        for tag, (manifest, _) in blobs.items()
    ]
    index = json.dumps({"schemaVersion": 2, "manifests": manifests}).encode()
    part = layer.with_name(f"oci-{os.getpid()}.part")
    try:
        with tarfile.open(part, "w") as archive, layer.open("rb") as contents:
            _add(archive, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
            _add(archive, "index.json", index)
            for blob in {blob for pair in blobs.values() for blob in pair}:
                _add(archive, f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}", blob)
            header = tarfile.TarInfo(f"blobs/sha256/{digest}")
            header.size = layer.stat().st_size
            archive.addfile(header, contents)
        yield part
    except OSError as error:
        fix = "free disk space below TARE_HOME"
        raise ImageError(f"the image's OCI archive cannot be made: {error.strerror}", fix=fix) from error
    finally:
        part.unlink(missing_ok=True)


def _oci_image(layer_digest: str, layer_bytes: int, command: Sequence[str]) -> tuple[bytes, bytes]:
    """Return manifest and configuration of an image with this single layer (OCI image specification 1.0)."""
    machine = os.uname().machine
    config = json.dumps(
        {
            "architecture": _ARCHITECTURES.get(machine, machine),
            "os": "linux",
            "config": {"Cmd": list(command), "Env": [PATH_INSIDE]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        }
    ).encode()
    layers = [{"mediaType": f"{_OCI}.layer.v1.tar", "digest": f"sha256:{layer_digest}", "size": layer_bytes}]
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": _described(config, "config"),
        "layers": layers,
    }
    return json.dumps(manifest).encode(), config


def _described(blob: bytes, kind: str) -> dict[str, object]:
    digest = hashlib.sha256(blob).hexdigest()
    return {"mediaType": f"{_OCI}.{kind}.v1+json", "digest": f"sha256:{digest}", "size": len(blob)}


def _add(archive: tarfile.TarFile, name: str, contents: bytes) -> None:
    header = tarfile.TarInfo(name)
    header.size = len(contents)
    archive.addfile(header, io.BytesIO(contents))


def same_bytes(*, clamp: bool = True) -> list[str]:
    """Return tar's options for the same bytes from the same contents, at any time and in any place.

    ``clamp``: no file is younger than the recipe; otherwise the files' times are part of the contents.
    """
    options = ["--sort=name", "--numeric-owner", "--one-file-system", "--xattrs", "--format=posix"]
    if clamp:
        options += [f"--mtime=@{image_recipe.load().epoch}", "--clamp-mtime"]
    return [*options, "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"]


def ext4(image: Image, size_bytes: int) -> Path:
    """Return an ext4 filesystem of this size with the image in it, as a sparse file. Nothing is mounted to make it.

    Raises `ImageError` if it cannot be made.
    """
    place = image.root.parent / f"root-{size_bytes >> 20}M.ext4"
    if not place.exists():
        needed = image_bytes(image)
        if size_bytes < needed:
            raise ImageError(
                f"{size_bytes >> 20} MiB do not hold the image, which takes {needed >> 20} MiB",
                fix=f"a disk of at least {(needed * 5 // 4) >> 20} MiB",
            )
        part = place.with_suffix(".part")
        part.unlink(missing_ok=True)  # Left by a killed build.
        _require(filesystems.make(part, size_bytes, contents=image.root), part)
        part.rename(place)
    return place


def image_bytes(image: Image) -> int:
    """Return `disk_bytes` of the image's root. Cached for the process, because nothing writes below the root."""
    return _kept_bytes(image.root)


def disk_bytes(path: Path) -> int:
    """Return the disk space of a file, or of all files in a folder. A file with several names counts once."""
    if path.is_file():
        return path.stat().st_blocks * 512
    seen: set[tuple[int, int]] = set()
    total = 0
    for folder, names, files in os.walk(path):
        for name in (*names, *files):
            facts = os.lstat(f"{folder}/{name}")
            if (facts.st_dev, facts.st_ino) not in seen:
                seen.add((facts.st_dev, facts.st_ino))
                total += facts.st_blocks * 512
    return total


@functools.lru_cache(maxsize=8)
def _kept_bytes(root: Path) -> int:
    return disk_bytes(root)


def unpacked_bytes(folder: Path) -> int:
    """Return the sum of the lengths of all files below a folder. A file with several names counts once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for below, _, files in os.walk(folder):
        for name in files:
            facts = os.lstat(f"{below}/{name}")
            if stat.S_ISREG(facts.st_mode) and (facts.st_dev, facts.st_ino) not in seen:
                seen.add((facts.st_dev, facts.st_ino))
                total += facts.st_size
    return total


def _require(done: processes.Finished, part: Path) -> None:
    if done.code != 0:
        part.unlink(missing_ok=True)
        raise ImageError(f"{part.name} cannot be made: {done.message}", fix="free disk space below TARE_HOME")
