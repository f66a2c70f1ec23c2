"""Which images in the cache are no use to the present tare: of another recipe or another agent, damaged, half made."""

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
from tare.image import build, manifests, recipe, work
from tare.image.build import Image
from tare.model import Layer

#: More than an agent has; what is beyond it is none.
MAX_BYTES = 64 << 20
_IMAGE, _OWN = r"[0-9a-f]{16}", r"own-([0-9a-f]{16})"


@dataclass(frozen=True, slots=True)
class Unused:
    """A folder of the cache that nothing is started from any more, and why.

    ``image``: what engines may have a copy of; None where nothing was ever started from the folder.
    """

    place: Path
    why: str
    image: Image | None = None


def unused(agent: Path, layers: Collection[Layer]) -> list[Unused]:
    """What the cache has besides what the next campaign may take. The caller holds the lock of the images' folder.

    ``layers``: all that workloads may ask for. What has layers that are not among them, as a plug-in's that is not
    installed now, stays, and so does what was fetched from a registry.
    """
    agent_hash = hashlib.sha256(agent.read_bytes()).hexdigest()
    places = sorted(place for place in state.images().iterdir() if place.is_dir())
    bases = {place: _why_no_base(place, layers) for place in places if place.name.startswith("base-")}
    recipes = {_recipe_hash(place) for place, why in bases.items() if not why}
    folders = [Unused(place, why) for place, why in bases.items() if why]
    for place in places:
        if place.name.startswith("new-"):  # whoever built it had the lock that the caller has
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
    return "" if recipe_hash == recipe.load(on_top).hash else "of another recipe"


def _layers(names: str, known: Mapping[str, Layer]) -> Iterator[list[Layer]]:
    """The ways to read names that are joined by dashes, as they may have dashes themselves."""
    if not names:
        yield []
    for name, layer in known.items():
        if names == name or names.startswith(f"{name}-"):
            rest = names[len(name) + 1 :]
            yield from ([layer, *more] for more in _layers(rest, known))


def _recipe_hash(place: Path) -> str:
    try:
        return manifests.read(place).recipe_hash
    except ImageError:
        return ""


def _agent_hash(place: Path) -> str:
    return hashlib.sha256(_read(place, build.AGENT_INSIDE)).hexdigest()


def _image(place: Path) -> Image | None:
    """The image in a folder, by the hash that it has inside and that its folder is named by."""
    digest = _read(place, build.HASH_INSIDE).decode(errors="replace").strip()
    if not re.fullmatch(r"[0-9a-f]{64}", digest) or digest[:16] != place.name.removeprefix("own-"):
        return None
    packages = manifests.Manifest(suite="", recipe_hash=_recipe_hash(place), packages={})  # what is in it, nobody asks
    return Image(digest, place / "root", packages, _agent_hash(place))


def _read(place: Path, path: str) -> bytes:
    """A file of a root; nothing where there is none. A user's own image may have a link in its place."""
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
