"""A user's own image in the form that instances run: its root filesystem, with the agent in it.

The result is an `Image` like tare's own, with all of its forms: a folder, a tar, an ext4 filesystem. It is built once
for the same contents and the same agent, beside tare's images.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from tare.errors import ImageError
from tare.host import distribution, processes, state
from tare.host.filesystems import archives
from tare.host.kernel import beneath, removal
from tare.image import container_images, forms
from tare.image.build_places import atomic_directory, locked
from tare.image.image_build import AGENT_INSIDE, HASH_INSIDE, Image
from tare.image.image_manifest import OwnManifest
from tare.model import Application, ImageSource, Progress

REGISTRY = "docker://"
#: Raise this number if the same contents give another image.
VERSION = 1
FETCH_LIMIT_S = 1200.0
#: skopeo uses these to find a registry, and the user's logins to it.
_SKOPEOS = (*processes.DOWNLOADS, "REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "CONTAINERS_*", "XDG_RUNTIME_DIR")
#: Folders that guests and engines mount something on, and folders of the usual programs.
_FOLDERS = ("data", "dev", "proc", "sys", "run", "tmp", "root", "etc", "usr/local/bin")
_PROGRAM_FOLDERS = ("usr/local/bin", "usr/bin", "bin", "usr/sbin", "sbin", "usr/local/sbin")


def ensure(source: ImageSource, agent: Path, tools: Image, progress: Progress) -> Image:
    """Return the image of a source, from the cache or newly made. Raises `ImageError`.

    ``tools``: tare's image, which runs the client of such a campaign.
    """
    agent_hash = hashlib.sha256(agent.read_bytes()).hexdigest()
    with locked(state.images(), progress):
        if source.folder:
            return _of_folder(source, agent, agent_hash, tools, progress)
        place = fetched(source, progress)
        container = container_images.read(place, source.tag)
        digest = hash_of(container.digest, agent_hash)
        folder = state.images() / f"own-{digest[:16]}"
        if not folder.is_dir():
            progress(f"unpacking {_name(source)}")
            with atomic_directory(folder, _name(source)) as new_folder:
                root = new_folder / "root"
                root.mkdir(mode=0o755)
                unpacked(lambda: container_images.unpack(place, container, root), _name(source))
                add_agent(root, agent, digest)
        return _image(folder, digest, agent_hash, tools, source, container.digests, container.application)


def bare(agent: Path, tools: Image, progress: Progress) -> Image:
    """Return an image of the agent alone (2 MB), which engines import at once, for work that needs no other program."""
    with tempfile.TemporaryDirectory(dir=state.images()) as scratch:
        folder = Path(scratch, "bare")
        folder.mkdir()
        folder.chmod(0o755)  # The mode is part of the digest.
        return ensure(ImageSource(str(folder), folder=True), agent, tools, progress)


def hash_of(contents: str, agent_hash: str) -> str:
    """Return the hash of an image with these contents and the agent."""
    return hashlib.sha256(f"own {VERSION}\n{contents}\n{agent_hash}\n".encode()).hexdigest()


def _name(source: ImageSource) -> str:
    return source.place if source.place.startswith(REGISTRY) else Path(source.place).name


def _image(
    folder: Path,
    digest: str,
    agent_hash: str,
    tools: Image,
    source: ImageSource,
    digests: dict[str, str],
    how: Application,
) -> Image:
    manifest = OwnManifest(
        suite="own",
        recipe_hash=digest,
        packages={},
        source=_name(source),
        digests=digests,
        tools=tools.manifest,
        tools_hash=tools.hash,
    )
    return Image(digest, folder / "root", manifest, agent_hash, application=how, tools=tools)


def _of_folder(source: ImageSource, agent: Path, agent_hash: str, tools: Image, progress: Progress) -> Image:
    """Return the image of a folder. It is packed as a tar, whose digest is its identity, and unpacked like a layer."""
    place = Path(source.place).absolute()
    progress(f"reading {place.name}")
    with tempfile.TemporaryDirectory(dir=state.images()) as scratch:
        packed = Path(scratch, "root.tar")
        pack(place, packed, forms.same_bytes(), fix="make all in it readable, and free disk space")
        with packed.open("rb") as tar:
            contents = hashlib.file_digest(tar, "sha256").hexdigest()
            digest = hash_of(contents, agent_hash)
            folder = state.images() / f"own-{digest[:16]}"
            if not folder.is_dir():
                tar.seek(0)
                with atomic_directory(folder, place.name) as new_folder:
                    root = new_folder / "root"
                    root.mkdir(mode=0o755)
                    unpacked(lambda: archives.unpack_layer(tar, root, 2 * container_images.MAX_BYTES), _name(source))
                    add_agent(root, agent, digest)
    return _image(folder, digest, agent_hash, tools, source, {"folder": contents}, Application())


def pack(place: Path, packed: Path, options: list[str], *, fix: str) -> None:
    """Write a tar of a folder of the user's. Raises `ImageError`."""
    most = 2 * container_images.MAX_BYTES
    # A sparse file in it may be larger than the disk. The kernel holds tar to the bound.
    argv = ["prlimit", f"--fsize={most}", "tar", "-C", str(place), *options, "-cf", str(packed), "."]
    done = processes.run(argv, time_limit_s=forms.LIMIT_S)
    if done.code == -signal.SIGXFSZ:
        problem = f"{place} has more than the {most >> 20:,} MiB that it may have"
        raise ImageError(problem, fix="name a smaller folder, without large sparse files")
    if done.code != 0:
        raise ImageError(f"{place} cannot be packed: {done.message}", fix=fix)


def unpacked(unpack: Callable[[], None], name: str) -> None:
    """Unpack a source of this name. Raises `ImageError` for errors that only the disk or the source can cause."""
    if os.geteuid() != 0:
        raise ImageError("only root can make the files of an image", fix="run tare as root (sudo)")
    try:
        unpack()
    except tarfile.TarError as error:
        message = f"{name} cannot be unpacked: {error}"
        raise ImageError(message, fix="leave that file out of the image") from error
    except OSError as error:
        message = f"{name} cannot be unpacked: {error.strerror}"
        raise ImageError(message, fix=f"free disk space below {state.home()}") from error


def fetched(source: ImageSource, progress: Progress) -> Path:
    """Return the place of an image. An image in a registry is first copied into a layout, once. Raises `ImageError`.

    The caller holds the lock of the images' folder.
    """
    if not source.place.startswith(REGISTRY):
        return Path(source.place)
    place = state.images() / f"fetched-{hashlib.sha256(source.place.encode()).hexdigest()[:16]}"
    if place.is_dir():
        return place
    if processes.find("skopeo") is None:
        fix = f"{distribution.install('skopeo')}; or name an archive that docker save wrote elsewhere"
        raise ImageError(f"{source.place} is fetched by skopeo, which is not installed", fix=fix)
    progress(f"fetching {source.place}")
    with atomic_directory(place, source.place) as folder:
        argv = ["skopeo", "copy", "--quiet", source.place, f"oci:{folder}:image"]
        done = processes.run(argv, time_limit_s=FETCH_LIMIT_S, env=processes.kept(*_SKOPEOS))
        if done.code != 0:
            how = "it took too long" if done.timed_out else _skopeos_word(done.stderr.decode(errors="replace"))
            fix = f"see what skopeo inspect {source.place} says; a name is HOST/NAME:TAG"
            raise ImageError(f"{source.place} cannot be fetched: {how}", fix=fix)
    return place


def _skopeos_word(printed: str) -> str:
    """Return skopeo's last message, without the time and the level in front."""
    messages = re.findall(r'msg="((?:[^"\\]|\\.)*)"', printed)
    return messages[-1].replace('\\"', '"') if messages else (printed.strip().splitlines() or ["no message"])[-1]


def add_agent(root: Path, agent: Path, digest: str) -> None:
    """Add the agent, and other files that every instance has. Follow no link of the image's: it may lead anywhere."""
    top = os.open(root, beneath.FOLDER)
    try:
        for path in _FOLDERS:
            _make_folder(top, path)
        write(top, AGENT_INSIDE, agent.read_bytes(), 0o755)
        write(top, HASH_INSIDE, f"{digest}\n".encode(), 0o644)
        if not _has(top, "true"):
            os.symlink(Path(AGENT_INSIDE).name, "usr/local/bin/true", dir_fd=top)
        if not any(_is_there(top, path) for path in ("etc/os-release", "usr/lib/os-release")):
            write(top, "etc/os-release", b"ID=own\n", 0o644)  # systemd-nspawn recognizes a root by this file.
    finally:
        os.close(top)


def _make_folder(top: int, path: str) -> None:
    """Create a folder and its parents. Each must be a folder of the image's own."""
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        name = "/".join(parts[:depth])
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=top)  # The parent was checked not to be a link.
        try:
            os.close(beneath.opened(top, name, beneath.FOLDER))
        except OSError as error:
            raise ImageError(f"/{name} of the image is no folder", fix="build it with a folder there") from error


def write(top: int, path: str, contents: bytes, mode: int) -> None:
    """Replace whatever has this name by a new file. `_make_folder` has created the parent."""
    folder, _, name = path.rpartition("/")
    above = beneath.opened(top, folder, beneath.FOLDER)
    try:
        removal.remove_in(above, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, mode, dir_fd=above), "wb") as file:
            file.write(contents)
            os.fchmod(file.fileno(), mode)
    finally:
        os.close(above)


def _has(top: int, program: str) -> bool:
    return any(_is_there(top, f"{folder}/{program}") for folder in _PROGRAM_FOLDERS)


def _is_there(top: int, path: str) -> bool:
    """Return True if something, perhaps a link, has this name, with no link among its parents."""
    folder, _, name = path.rpartition("/")
    with beneath.unless_vanished():
        above = beneath.opened(top, folder, beneath.FOLDER)
        try:
            os.lstat(name, dir_fd=above)
        finally:
            os.close(above)
        return True
    return False
