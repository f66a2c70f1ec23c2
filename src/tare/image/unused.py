"""Images in the cache that the present tare cannot use: from another recipe or agent, damaged, or incomplete."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.errors import ImageError
from tare.host import state
from tare.host.kernel import beneath
from tare.image import image_build, image_manifest, image_recipe, work
from tare.image.image_build import Image
from tare.model import Layer

#: Above the size of any agent, so a larger file is no agent.
MAX_BYTES = 64 << 20
_IMAGE, _OWN = r"[0-9a-f]{16}", r"own-([0-9a-f]{16})"


@dataclass(frozen=True, slots=True)
class Unused:
    """A folder of the cache from which nothing is started anymore, and why.

    ``image``: the image that engines may have copies of; None if nothing was ever started from the folder.
    """

    place: Path
    why: str
    image: Image | None = None


def unused(agent: Path, layers: Collection[Layer]) -> list[Unused]:
    """Return the cached images that the next campaign cannot use. The caller holds the lock of the images' folder.

    ``layers``: all layers of the installed workloads. Images with other layers, such as those of a plug-in that is not
    installed now, are kept. So are images from a registry.
    """
    agent_hash = hashlib.sha256(agent.read_bytes()).hexdigest()
    places = sorted(place for place in state.images().iterdir() if place.is_dir())
    bases = {place: _why_no_base(place, layers) for place in places if place.name.startswith("base-")}
    recipes = {_recipe_hash(place) for place, why in bases.items() if not why}
    folders = [Unused(place, why) for place, why in bases.items() if why]
    for place in places:
        if place.name.startswith("new-"):  # Its builder has ended, as the caller holds the lock.
            folders.append(Unused(place, "half made"))
        elif (is_own := re.fullmatch(_OWN, place.name)) or re.fullmatch(_IMAGE, place.name):
            recipe_hash = "" if is_own else _recipe_hash(place)
            if _agent_hash(place) != agent_hash:
                folders.append(Unused(place, "of another agent", _image(place)))
            elif not is_own and recipe_hash not in recipes:
                folders.append(Unused(place, "of another recipe", _image(place)))
    known = {folder.place for folder in folders}
    earlier = [place for place in work.earlier_states(places) if place not in known]
    return folders + [Unused(place, "of an earlier state of a folder", _image(place)) for place in earlier]


def _why_no_base(place: Path, layers: Collection[Layer]) -> str:
    names = place.name.removeprefix("base-").rpartition("-")[0]
    on_top = next(_layers(names, {layer.name: layer for layer in layers}), None)
    if on_top is None:
        return ""
    recipe_hash = _recipe_hash(place)
    if not recipe_hash:
        return "damaged"
    return "" if recipe_hash == image_recipe.load(on_top).hash else "of another recipe"


def _layers(names: str, known: Mapping[str, Layer]) -> Iterator[list[Layer]]:
    """Yield all ways to split names that are joined by dashes, because a name may contain dashes."""
    if not names:
        yield []
    for name, layer in known.items():
        if names == name or names.startswith(f"{name}-"):
            rest = names[len(name) + 1 :]
            yield from ([layer, *more] for more in _layers(rest, known))


def _recipe_hash(place: Path) -> str:
    try:
        return image_manifest.read(place).recipe_hash
    except ImageError:
        return ""


def _agent_hash(place: Path) -> str:
    return hashlib.sha256(_read(place, image_build.AGENT_INSIDE)).hexdigest()


def _image(place: Path) -> Image | None:
    """Return the image in a folder, by the hash inside it, which must also be the folder's name."""
    digest = _read(place, image_build.HASH_INSIDE).decode(errors="replace").strip()
    if not re.fullmatch(r"[0-9a-f]{64}", digest) or digest[:16] != place.name.removeprefix("own-"):
        return None
    # The contents are not needed here.
    packages = image_manifest.Manifest(suite="", recipe_hash=_recipe_hash(place), packages={})
    return Image(digest, place / "root", packages, _agent_hash(place))


def _read(place: Path, path: str) -> bytes:
    """Return the contents of a root's file; empty if it is missing. In a user's own image it may be a link."""
    try:
        top = os.open(place / "root", beneath.FOLDER)
    except OSError:
        return b""
    try:
        descriptor = beneath.regular(top, path)
        if descriptor is None:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_BYTES)
    finally:
        os.close(top)
