"""The recipe of the image: what is in it, and the hash of that."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from importlib import resources

from tare.errors import ImageError


@dataclass(frozen=True, slots=True)
class Recipe:
    """A Debian suite, and the packages on top of its minimal base."""

    suite: str
    variant: str
    pinned: tuple[tuple[str, str], ...]  # package, version
    recorded: tuple[str, ...]
    hash: str  # SHA-256 of the recipe's text, 64 hexadecimal digits

    @property
    def include(self) -> str:
        """What mmdebstrap is told to install: versions where they are pinned."""
        return ",".join([*(f"{name}={version}" for name, version in self.pinned), *self.recorded])


def load() -> Recipe:
    """The recipe that comes with tare."""
    return parse(resources.files("tare.image").joinpath("recipe.toml").read_bytes())


def parse(text: bytes) -> Recipe:
    """Read a recipe. Raises `ImageError` that says what is wrong with it."""
    try:
        data = tomllib.loads(text.decode())
        return Recipe(
            suite=str(data["suite"]),
            variant=str(data["variant"]),
            pinned=tuple(sorted((str(name), str(version)) for name, version in data["pinned"].items())),
            recorded=tuple(sorted(str(name) for name in data["recorded"]["packages"])),
            hash=hashlib.sha256(text).hexdigest(),
        )
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, AttributeError, TypeError) as error:
        raise ImageError(
            f"the image's recipe cannot be read: {error!r}", fix="restore src/tare/image/recipe.toml"
        ) from error
