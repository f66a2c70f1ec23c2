"""Reader of container images as files: an OCI layout (a folder or a tar of it), or the output of ``docker save``.

Any part may be hostile: every name is looked up below its folder, every blob is verified against its digest, and
everything has a limit. tare has its own reader because few hosts have the tools (umoci, skopeo, buildah). These also
assume that an engine will confine what they unpack, while here root on the host runs it.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, TypeVar

import zstandard
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from tare.errors import ImageError, first_invalid
from tare.host.filesystems import archives
from tare.host.kernel import beneath
from tare.model import Application

#: Limits for all layers of an image, uncompressed, and for its JSON.
MAX_BYTES = 8 << 30
MAX_JSON = 4 << 20
MAX_LAYERS = 256
_PIECE = 1 << 20
_TAR_BLOCK = 512
#: zstd's window in memory: the largest that its tools use by default.
_WINDOW = 1 << 27
_INDEX = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_TAG = "org.opencontainers.image.ref.name"
#: Images' names of machines, by the name from ``uname``.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


M = TypeVar("M", bound=BaseModel)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)  # The specification may add further fields.


class _Platform(_Model):
    architecture: str = ""
    os: str = ""


class _Descriptor(_Model):
    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    mediaType: str = ""  # noqa: N815 (the specification's)
    annotations: dict[str, str] | None = None
    platform: _Platform | None = None


class _Index(_Model):
    manifests: list[_Descriptor]


class _Manifest(_Model):
    config: _Descriptor
    layers: list[_Descriptor] = Field(max_length=MAX_LAYERS)


class _Saved(_Model):
    """An entry of the ``manifest.json`` that ``docker save`` writes."""

    Config: str
    Layers: list[str] = Field(max_length=MAX_LAYERS)
    RepoTags: list[str] | None = None


class _Saves(RootModel[list[_Saved]]):
    """The whole ``manifest.json``."""


class _Run(_Model):
    User: str = ""
    Env: list[str] | None = None
    Entrypoint: list[str] | None = None
    Cmd: list[str] | None = None
    WorkingDir: str = ""


class _RootFs(_Model):
    diff_ids: list[str] = Field(max_length=MAX_LAYERS)


class _Config(_Model):
    architecture: str = ""
    os: str = ""
    config: _Run | None = None
    rootfs: _RootFs


@dataclass(frozen=True, slots=True)
class _Layer:
    place: str  # Below the layout.
    digest: str | None  # SHA-256 of the blob as stored; None: only the digest of its contents is known.
    contents: str  # SHA-256 of the tar in it.


@dataclass(frozen=True, slots=True)
class OciImage:
    """Description of an image, before its layers are unpacked."""

    digest: str  # SHA-256 of its configuration, which names the contents of all layers; 64 hexadecimal digits.
    layers: tuple[_Layer, ...]
    application: Application

    @property
    def digests(self) -> dict[str, str]:
        """The digests of configuration and layers (of their contents), for the record."""
        named = {f"layer {number}": layer.contents for number, layer in enumerate(self.layers, start=1)}
        return {"config": self.digest, **named}


class _Files(Protocol):
    """The files of a layout, by their path in it."""

    def opened(self, path: str) -> contextlib.AbstractContextManager[IO[bytes]]: ...
    def has(self, path: str) -> bool: ...


class _Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def opened(self, path: str) -> Iterator[IO[bytes]]:
        top = os.open(self._folder, beneath.FOLDER & ~os.O_NOATIME)
        try:
            descriptor = beneath.regular(top, path)
        finally:
            os.close(top)
        if descriptor is None:
            raise ImageError(f"{self._folder} has no file {path}", fix="copy the whole image again")
        with os.fdopen(descriptor, "rb") as file:
            yield file

    def has(self, path: str) -> bool:
        return (self._folder / path).is_file()


class _Archive:
    def __init__(self, tar: tarfile.TarFile, name: Path) -> None:
        self._tar = tar
        self._name = name
        self._files: dict[str, tarfile.TarInfo] = {}
        for number, member in enumerate(tar):
            if number == archives.MAX_MEMBERS:
                raise ImageError(f"{name} has more than {archives.MAX_MEMBERS} members", fix="name an OCI archive")
            if member.isreg() and not member.issparse():
                self._files[str(PurePosixPath(member.name))] = member

    @contextlib.contextmanager
    def opened(self, path: str) -> Iterator[IO[bytes]]:
        member = self._files.get(path)
        file = self._tar.extractfile(member) if member is not None else None
        if file is None:
            raise ImageError(f"{self._name} has no file {path}", fix="write the archive again")
        with file:
            yield file

    def has(self, path: str) -> bool:
        return path in self._files


@contextlib.contextmanager
def _files(place: Path) -> Iterator[_Files]:
    if place.is_dir():
        yield _Folder(place)
        return
    try:
        with place.open("rb") as file, archives.opened(file, 4 * MAX_BYTES) as tar:
            yield _Archive(tar, place)
    except (OSError, tarfile.TarError) as error:
        problem = getattr(error, "strerror", None) or error
        raise ImageError(
            f"{place} is no image: {problem}", fix="name an OCI layout, or an archive of one that is not compressed"
        ) from error


def read(place: Path, tag: str | None = None) -> OciImage:
    """Read the description of the image at a place; ``tag`` selects one of several. Raises `ImageError`."""
    with _files(place) as files:
        return _read(files, place, tag)


def unpack(place: Path, image: OciImage, root: Path) -> None:
    """Unpack all layers of an image into an empty folder, each verified by its digest. Raises `ImageError`."""
    left = MAX_BYTES
    with _files(place) as files:
        for layer in image.layers:
            with tempfile.TemporaryFile(dir=root.parent) as plain:
                with files.opened(layer.place) as packed:
                    left -= _decompressed(packed, plain, layer, left)
                plain.seek(0)
                try:
                    archives.unpack_layer(plain, root, 2 * MAX_BYTES)
                except tarfile.TarError as error:
                    raise ImageError(
                        f"a layer of {place} cannot be unpacked: {error}", fix="build the image without such a file"
                    ) from error


def _read(files: _Files, place: Path, tag: str | None) -> OciImage:
    if files.has("index.json"):
        chosen = _chosen(_valid(_Index, _bytes(files, "index.json"), "index.json").manifests, files, place, tag)
        manifest = _checked(files, chosen, _Manifest)
        config = _checked(files, manifest.config, _Config)
        digest = manifest.config.digest.removeprefix("sha256:")
        places = [(_blob(layer.digest), layer.digest.removeprefix("sha256:")) for layer in manifest.layers]
    elif files.has("manifest.json"):
        saved = _of_tag(_valid(_Saves, _bytes(files, "manifest.json"), "manifest.json").root, place, tag)
        text = _bytes(files, saved.Config)
        config, digest = _valid(_Config, text, saved.Config), hashlib.sha256(text).hexdigest()
        places = [(path, "") for path in saved.Layers]
    else:
        raise ImageError(
            f"{place} is no container image: it has neither index.json nor manifest.json",
            fix="name an OCI layout, an archive of one, or what docker save wrote",
        )
    if len(places) != len(config.rootfs.diff_ids):
        raise ImageError(
            f"{place} has {len(places)} layers and names {len(config.rootfs.diff_ids)}", fix="build it again"
        )
    _require_here(config, place)
    layers = tuple(
        _Layer(path, packed or None, contents.removeprefix("sha256:"))
        for (path, packed), contents in zip(places, config.rootfs.diff_ids, strict=True)
    )
    return OciImage(digest, layers, _application(config.config or _Run()))


def _chosen(listed: list[_Descriptor], files: _Files, place: Path, tag: str | None) -> _Descriptor:
    """Return the one manifest for this machine with this tag. A nested index lists one image for several machines."""
    tagged = [(entry, (entry.annotations or {}).get(_TAG, "")) for entry in listed]
    if tag is not None:
        tagged = [(entry, name) for entry, name in tagged if name == tag]
    fitting: dict[str, tuple[_Descriptor, str]] = {}
    for entry, name in tagged:
        below = _checked(files, entry, _Index).manifests if entry.mediaType in _INDEX else [entry]
        for manifest in below:
            if manifest.mediaType not in _INDEX and _is_ours(manifest.platform):
                fitting[manifest.digest] = (manifest, name)
    if len(fitting) == 1:
        return next(iter(fitting.values()))[0]
    names = sorted({(entry.annotations or {}).get(_TAG, "") for entry in listed} - {""})
    having = f": it has {', '.join(names)}" if names else ""
    if fitting:
        raise ImageError(f"{place} has {len(fitting)} images{having}", fix="choose one by source.tag")
    which = f"image {tag!r}" if tag is not None else f"image for {os.uname().machine}"
    raise ImageError(f"{place} has no {which}{having}", fix="name another image, or another source.tag")


def _is_ours(platform: _Platform | None) -> bool:
    return platform is None or (platform.os, platform.architecture) == ("linux", _machine())


def _of_tag(saves: list[_Saved], place: Path, tag: str | None) -> _Saved:
    fitting = [entry for entry in saves if tag is None or tag in (entry.RepoTags or [])]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(sorted(name for entry in saves for name in entry.RepoTags or [])) or "none with a name"
    raise ImageError(f"{place} has {len(fitting)} such images: {names}", fix="choose one by source.tag")


def _require_here(config: _Config, place: Path) -> None:
    if (config.os, config.architecture) != ("linux", _machine()):
        target = f"{config.os or 'no system'} on {config.architecture or 'no machine'}"
        raise ImageError(
            f"{place} is for {target}, and this is linux on {_machine()}", fix="name the image for this one"
        )


def _machine() -> str:
    machine = os.uname().machine
    return ARCHITECTURES.get(machine, machine)


def _application(run: _Run) -> Application:
    pairs = (entry.partition("=") for entry in run.Env or [])
    return Application(
        entrypoint=tuple(run.Entrypoint or ()),
        command=tuple(run.Cmd or ()),
        env={name: value for name, _, value in pairs if name},
        directory=run.WorkingDir or "/",
        user=run.User,
    )


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _checked(files: _Files, entry: _Descriptor, model: type[M]) -> M:
    """Parse a JSON blob, after a check that it has the digest in its reference."""
    text = _bytes(files, _blob(entry.digest))
    if f"sha256:{hashlib.sha256(text).hexdigest()}" != entry.digest:
        raise ImageError(f"{_blob(entry.digest)} of the image has other contents", fix="copy the whole image again")
    return _valid(model, text, _blob(entry.digest))


def _valid(model: type[M], text: bytes, path: str) -> M:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        message = f"{path} of the image cannot be read: {first_invalid(error)}"
        raise ImageError(message, fix="write the image again, by umoci, buildah, skopeo or docker") from error


def _bytes(files: _Files, path: str) -> bytes:
    with files.opened(path) as file:
        text = file.read(MAX_JSON + 1)
    if len(text) > MAX_JSON:
        raise ImageError(f"{path} of the image is longer than {MAX_JSON >> 20} MiB", fix="name an OCI image")
    return text


def _decompressed(packed: IO[bytes], plain: IO[bytes], layer: _Layer, most: int) -> int:
    """Write a layer's tar, verify its two digests, and return its length in bytes. Raises `ImageError`."""
    as_it_is, contents, written = hashlib.sha256(), hashlib.sha256(), 0
    start = packed.read(4)
    packed.seek(0)
    broken = f"{layer.place} of the image is damaged"
    again = "copy the whole image again"
    try:
        for piece in _pieces(_Hashed(packed, as_it_is), start):
            written += len(piece)
            if written > most:
                raise ImageError(f"the image unpacks to more than {MAX_BYTES >> 30} GiB", fix="name a smaller one")
            contents.update(piece)
            plain.write(piece)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise ImageError(f"the image cannot be unpacked: {error.strerror}", fix="free disk space") from error
        raise ImageError(f"{broken}: {error}", fix=again) from error
    plain.write(bytes(-written % _TAR_BLOCK + 2 * _TAR_BLOCK))  # umoci insert omits the end of the tar.
    if (layer.digest is not None and as_it_is.hexdigest() != layer.digest) or contents.hexdigest() != layer.contents:
        raise ImageError(f"{broken}: it has other contents than its digest says", fix=again)
    return written


class _Hashed:
    """A file whose bytes are added to a hash as they are read."""

    def __init__(self, file: IO[bytes], digest: hashlib._Hash) -> None:
        self._file = file
        self._digest = digest

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._digest.update(piece)
        return piece


def _pieces(packed: _Hashed, start: bytes) -> Iterator[bytes]:
    """Yield the tar in a layer. Its first bytes tell the compression: gzip, zstd, or none."""
    if start.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=packed, mode="rb") as plain:  # type: ignore[call-overload]
            while piece := plain.read(_PIECE):
                yield piece
    elif start == b"\x28\xb5\x2f\xfd":
        unpacking = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        with unpacking.stream_reader(packed, read_across_frames=True) as plain:  # type: ignore[arg-type]
            while piece := plain.read(_PIECE):
                yield piece
    else:
        while piece := packed.read(_PIECE):
            yield piece
