"""Recipe of the image: its contents, and their hash."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources

from tare.errors import ImageError
from tare.model import Layer


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """A Debian suite, and the packages on top of its minimal base."""

    suite: str
    variant: str
    epoch: int  # UNIX seconds; the latest date inside the image.
    left_out: tuple[str, ...]  # Patterns of files that dpkg does not unpack.
    removed: tuple[str, ...]  # Patterns of files that are removed at the end, relative to the root.
    files: tuple[tuple[str, str], ...]  # Path relative to the root, contents.
    pinned: tuple[tuple[str, str], ...]  # Package, version.
    recorded: tuple[str, ...]
    hash: str  # SHA-256 of the texts of the recipe and its layers; 64 hexadecimal digits.
    layers: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()  # Run by a shell at the end of the build; the root's path is its ``$1``.

    @property
    def include(self) -> str:
        """The packages that mmdebstrap installs, with versions if they are pinned."""
        return ",".join([*(f"{name}={version}" for name, version in self.pinned), *self.recorded])


def load(layers: Collection[Layer] = ()) -> ImageRecipe:
    """Return tare's recipe with these layers on top. Raises `ImageError`, also for two layers of one name."""
    recipe = parse(resources.files("tare.image").joinpath("recipe.toml").read_bytes())
    for layer in sorted(layers, key=lambda layer: layer.name):
        if layer.name in recipe.layers:
            raise ImageError(f"two workloads ask for layers {layer.name!r} of the image, and mean different ones")
        recipe = on_top(recipe, layer)
    return recipe


def parse(text: bytes) -> ImageRecipe:
    """Parse a recipe. Raises `ImageError` with the mistake."""
    try:
        data = tomllib.loads(text.decode())
        return ImageRecipe(
            suite=str(data["suite"]),
            variant=str(data["variant"]),
            epoch=int(data["epoch"]),
            left_out=_words(data["left_out"]),
            removed=_words(data["removed"]),
            files=_pairs(data["files"]),
            pinned=_pairs(data["pinned"]),
            recorded=_words(data["recorded"]["packages"]),
            hash=hashlib.sha256(text).hexdigest(),
        )
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ImageError(
            f"the image's recipe cannot be read: {type(error).__name__}: {error}",
            fix="restore src/tare/image/recipe.toml",
        ) from error


def on_top(base: ImageRecipe, layer: Layer) -> ImageRecipe:
    """Return a recipe with a layer's packages and commands added; a layer that adds nothing leaves it unchanged.

    Raises `ImageError` with the mistake in the layer.
    """
    try:
        data = tomllib.loads(layer.text)
        pinned, recorded, commands = (data.pop(name, {}) for name in ("pinned", "recorded", "commands"))
        packages = _words(recorded.pop("packages", ()))
        unknown = [*data, *recorded]
        if unknown or not (pinned or packages or commands):
            raise ValueError(f"it has {', '.join(unknown) or 'neither packages nor commands'}")
        if not pinned and not commands and {*packages} <= {*dict(base.pinned), *base.recorded}:
            return base
        return replace(
            base,
            pinned=_pairs({**dict(base.pinned), **pinned}),
            recorded=_words([*base.recorded, *packages]),
            hash=hashlib.sha256(base.hash.encode() + layer.text.encode()).hexdigest(),
            layers=(*base.layers, layer.name),
            commands=(*base.commands, *_listed(commands)),
        )
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ImageError(
            f"the image's layer {layer.name!r} cannot be read: {type(error).__name__}: {error}",
            fix="mend the workload that asks for it (docs/add-a-workload.md)",
        ) from error


def _listed(values: Sequence[object]) -> tuple[str, ...]:
    """Return the values like `_words`, in their given order."""
    _words(values)
    return tuple(str(value) for value in values)


def _words(values: Sequence[object]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError(f"{values!r} is not a list")
    return tuple(sorted(str(value) for value in values))


def _pairs(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in values.items()))
