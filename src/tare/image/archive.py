"""The image's base as one file, for hosts that cannot build it: without mmdebstrap, or without a network.

A tar, compressed with zstd: ``about.json``, ``manifest.json`` and ``root/``. The same base gives the same bytes. The
file's contents later run as root on the host that imports it (native has no isolation), so an import requires the hash
that the export printed. The file is treated as plain data before and after its hash is verified.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import IO

import zstandard
from pydantic import ValidationError

from tare.errors import ImageError, first_invalid
from tare.host import processes, state
from tare.host.filesystems import archives
from tare.image import forms, image_build, image_manifest, image_recipe
from tare.image.build_places import atomic_directory, locked
from tare.model import Progress
from tare.records import Frozen
from tare.timeouts import stretched

FORMAT = 1
#: Limit for an archive's uncompressed contents: five times the present base.
MAX_BYTES = 2 << 30
#: Limit for zstd's window in memory during unpacking. Archives made by tare use smaller windows.
_WINDOW = 1 << 27
_LEVEL = 9
_JSON_BYTES = 4 << 20
_PIECE = 1 << 20


class About(Frozen):
    """Description of an archive, stored inside it."""

    format: int
    machine: str


def export(file: IO[bytes], progress: Progress) -> str:
    """Write the base of this tare's recipe to an open file, building it if it is missing. Return the file's SHA-256.

    Raises `ImageError`.
    """
    with locked(state.images(), progress), tempfile.TemporaryDirectory() as scratch:
        base = image_build.built_base(image_recipe.load(), progress)
        progress("packing the image")
        Path(scratch, "about.json").write_text(About(format=FORMAT, machine=os.uname().machine).model_dump_json())
        sources = ["-C", scratch, "about.json", "-C", str(base), "manifest.json", "root"]
        with tempfile.TemporaryFile() as messages:
            tar = processes.start(
                ["tar", *forms.same_bytes(), "-cf", "-", *sources], stdout=subprocess.PIPE, stderr=messages
            )
            try:
                assert tar.stdout is not None
                digest = _compress(tar.stdout, file)
                code = tar.wait(stretched(forms.LIMIT_S))
            finally:
                processes.end(tar)
            if code != 0:
                messages.seek(0)
                message = (messages.read(4096).decode(errors="replace").strip().splitlines() or ["no message"])[-1]
                raise ImageError(f"the image cannot be packed: {message}", fix="free disk space below TARE_HOME")
    return digest


def hash_of(file: Path) -> str:
    """Return the SHA-256 of a file. Raises `ImageError`."""
    try:
        with file.open("rb") as there:
            return hashlib.file_digest(there, "sha256").hexdigest()
    except OSError as error:
        raise ImageError(f"{file} cannot be read: {error.strerror}", fix="name a file that there is") from error


def bring_in(file: Path, expected: str, progress: Progress) -> image_manifest.Manifest:
    """Import the base from an archive with this SHA-256 into ``TARE_HOME``. Raises `ImageError`.

    An existing base stays, because the same recipe has the same base.
    """
    if os.geteuid() != 0:
        raise ImageError("only root can make the files of an image", fix="run tare as root (sudo)")
    with locked(state.images(), progress):
        place = image_build.base_place()
        if place.is_dir():
            progress("an image of this recipe is there already, and stays")
            return image_manifest.read(place)
        image_build.require_room()
        with atomic_directory(place) as folder:
            try:
                with file.open("rb") as packed, tempfile.TemporaryFile(dir=folder) as plain:
                    progress("checking the archive")
                    _require_hash(_decompress(packed, plain), file, expected)
                    plain.seek(0)
                    progress("unpacking the image")
                    archives.unpack_root(plain, folder, 2 * MAX_BYTES)
            except (tarfile.TarError, zstandard.ZstdError) as error:
                raise ImageError(f"{file} is no image: {error}", fix="export it again, by tare image export") from error
            return _checked(folder, file)


def _compress(source: IO[bytes], target: IO[bytes]) -> str:
    digest = hashlib.sha256()
    packing = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
    while piece := source.read(_PIECE):
        _both(digest, target, packing.compress(piece))
    _both(digest, target, packing.flush())
    return digest.hexdigest()


def _both(digest: hashlib._Hash, target: IO[bytes], piece: bytes) -> None:
    digest.update(piece)
    target.write(piece)


def _decompress(source: IO[bytes], target: IO[bytes]) -> str:
    """Decompress, and return the SHA-256 of the input. Raises `zstandard.ZstdError` for bad or too large data."""
    digest = hashlib.sha256()

    class Hashed:
        def read(self, size: int = -1) -> bytes:
            piece = source.read(size)
            digest.update(piece)
            return piece

    written = 0
    with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(Hashed()) as plain:  # type: ignore[arg-type]
        while piece := plain.read(_PIECE):
            written += len(piece)
            if written > MAX_BYTES:
                raise zstandard.ZstdError(f"it unpacks to more than {MAX_BYTES >> 20} MiB")
            target.write(piece)
    while piece := source.read(_PIECE):  # Data behind the end of the archive belong to the file's hash too.
        digest.update(piece)
    return digest.hexdigest()


def _require_hash(digest: str, file: Path, expected: str) -> None:
    if digest != expected.lower():
        raise ImageError(
            f"{file} has the SHA-256 {digest}, and not {expected}",
            fix="copy it again, and give the hash that tare image export printed",
        )


def _checked(folder: Path, file: Path) -> image_manifest.Manifest:
    """Return the manifest of the unpacked base, after a check that it fits this host and the recipe."""
    names = sorted(entry.name for entry in os.scandir(folder))
    plain = [folder / "about.json", folder / "manifest.json"]
    if names != ["about.json", "manifest.json", "root"] or not all(
        path.is_file() and not path.is_symlink() and path.stat().st_size <= _JSON_BYTES for path in plain
    ):
        raise ImageError(f"{file} is no image: it has {', '.join(names[:9]) or 'nothing'}", fix="tare image export")
    try:
        about = About.model_validate_json(plain[0].read_bytes())
        manifest = image_manifest.Manifest.model_validate_json(plain[1].read_bytes())
    except ValidationError as error:
        raise ImageError(f"{file} is of another tare: {first_invalid(error)}", fix="export by this one") from error
    own_recipe = image_recipe.load()
    machine = os.uname().machine
    if about.format != FORMAT or manifest.recipe_hash != own_recipe.hash:
        raise ImageError(f"{file} has an image of another version of tare", fix="export it by the version that is here")
    if about.machine != machine:
        raise ImageError(f"{file} has an image for {about.machine}, this is {machine}", fix=f"export it on {machine}")
    image_build.check_pins(own_recipe, manifest.packages)
    plain[0].unlink()
    return manifest
