"""A user's folder in an image, for commands that run in it (`tare run --folder`).

The image holds it twice: as the commands' working folder, and as the original, from which the agent restores the
working folder before each run. So each platform gives an instance its own copy through the writable layer, like the
rest of the image, and the host's folder is only read. All other files are hard links to those of the image below.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from tare.errors import ImageError
from tare.host import state
from tare.host.filesystems import archives
from tare.host.filesystems.disk_copies import copy_by_links
from tare.host.kernel import beneath, removal
from tare.image import container_images, forms, own
from tare.image.build_places import atomic_directory, locked
from tare.image.image_build import HASH_INSIDE, Image
from tare.image.image_manifest import OwnManifest
from tare.model import WORK, WORK_ORIGINAL, Progress

#: The file beside an image's root that names the folder in it and the image below; the name of the folder's digest.
NAMED, DIGEST = "work", "folder at /work"
#: Limit of files in a folder. An installed JavaScript project has about 100,000.
MAX_FILES = 2_000_000
MAX_TABLE_BYTES = 1 << 20
#: Number of outdated images of folders from which tare tells the user how to remove them.
MANY_STATES = 5


def ensure(image: Image, work: Path, progress: Progress) -> Image:
    """Return an image with a folder of the host's in it, from the cache or newly made. Raises `ImageError`.

    The folder belongs to the image's user. Its identity is its contents and their times.
    """
    if not work.is_dir() or state.home().is_relative_to(work.resolve()):
        raise ImageError(f"{work} is no folder that instances can have", fix="name the folder of your program")
    progress(f"reading {work.name}")
    with locked(state.images(), progress), tempfile.TemporaryDirectory(dir=state.images()) as scratch:
        owner = _identity(image)
        with _packed(work, Path(scratch, "work.tar"), owner).open("rb") as tar:
            contents = hashlib.file_digest(tar, "sha256").hexdigest()
            digest = own.hash_of(f"{image.hash}\nwork {contents}", image.agent_hash)
            folder = state.images() / f"own-{digest[:16]}"
            if not folder.is_dir():
                with atomic_directory(folder, work.name) as new_folder:
                    copy_by_links(image.root, new_folder / "root")
                    own.unpacked(lambda: _put(new_folder / "root", tar, owner, digest), work.name)
                    (new_folder / NAMED).write_text(f"{work}\non {image.hash}\n")
                earlier = len(earlier_states(state.images().iterdir()))
                if earlier >= MANY_STATES:
                    progress(f"{earlier} images of folders as they were earlier are kept: tare clean --images")
            (folder / NAMED).touch()  # Marks the newest state of the folder.
    base, tools = image.manifest, image if image.tools is None else image.tools
    digests = {**(base.digests if isinstance(base, OwnManifest) else {}), DIGEST: contents}
    manifest = OwnManifest(
        suite="own",
        recipe_hash=digest,
        packages=base.packages,
        source=f"{base.source} and {work.name}" if isinstance(base, OwnManifest) else work.name,
        digests=digests,
        tools=tools.manifest,
        tools_hash=tools.hash,
    )
    return dataclasses.replace(image, hash=digest, root=folder / "root", manifest=manifest, tools=tools)


def _packed(work: Path, packed: Path, owner: tuple[int, int]) -> Path:
    """Return a tar of a folder, in which all files belong to ``owner`` (numbers of user and group)."""
    owned = ["--no-xattrs", f"--owner={owner[0]}", f"--group={owner[1]}"]
    fix = "make all in it readable, let nothing change it meanwhile, and free disk space"
    own.pack(work, packed, [*forms.same_bytes(clamp=False), *owned], fix=fix)
    return packed


def earlier_states(places: Iterable[Path]) -> list[Path]:
    """Return the folders of images that are outdated: a newer image of the same folder on the same image exists.

    A campaign that ran an outdated image cannot be resumed, because the folder has changed.
    """
    states: dict[str, list[Path]] = {}
    for place in places:
        if place.name.startswith("own-") and (place / NAMED).is_file():
            states.setdefault((place / NAMED).read_text(), []).append(place)

    def last_used(place: Path) -> int:
        return (place / NAMED).stat().st_mtime_ns

    return [place for several in states.values() for place in sorted(several, key=last_used)[:-1]]


def _put(root: Path, tar: IO[bytes], owner: tuple[int, int], digest: str) -> None:
    """Unpack a folder's tar to both of its places. Like a mount, it hides the image's files there."""
    top = os.open(root, beneath.FOLDER)
    try:
        for name in (WORK, WORK_ORIGINAL):
            removal.remove_in(top, name.lstrip("/"))
            place = root / name.lstrip("/")
            place.mkdir(mode=0o755)
            os.chown(place, *owner)
            tar.seek(0)
            archives.unpack_root(tar, place, 2 * container_images.MAX_BYTES, MAX_FILES)
            os.utime(place, (0, 0))  # The same in both, at whatever time they were unpacked.
        own.write(top, HASH_INSIDE, f"{digest}\n".encode(), 0o644)
    finally:
        os.close(top)


def _identity(image: Image) -> tuple[int, int]:
    """Return the numbers of the user and group that run an image's programs; its own files may name them."""
    user_text = image.application.user if image.application is not None else ""
    name, _, group_name = user_text.partition(":")
    if not name:
        return 0, 0
    top = os.open(image.root, beneath.FOLDER)
    try:
        users, groups = _table(top, "etc/passwd"), _table(top, "etc/group")
    finally:
        os.close(top)
    entry = next((fields for fields in users if name in {fields[0], fields[2]}), [])
    user, group = entry[2] if entry else name, entry[3] if len(entry) > 3 else "0"
    if group_name:
        group = next((fields[2] for fields in groups if fields[0] == group_name), group_name)
    if not (user.isdecimal() and group.isdecimal()):
        raise ImageError(f"the image has no user {user_text!r}", fix="name one of its /etc/passwd")
    return int(user), int(group)


def _table(top: int, path: str) -> list[list[str]]:
    """Return the entries of a root's passwd or group file with three fields or more; empty without a file."""
    with beneath.unless_vanished():
        descriptor = beneath.regular(top, path)
        if descriptor is not None:
            with os.fdopen(descriptor, "rb") as file:
                text = file.read(MAX_TABLE_BYTES).decode(errors="replace")
            return [fields for line in text.splitlines() if len(fields := line.split(":")) >= 3]
    return []
