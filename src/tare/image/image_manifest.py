"""Manifest of an image: a JSON file beside its root."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tare.errors import ImageError


class Manifest(BaseModel):
    """The contents of an image; recorded in every campaign."""

    model_config = ConfigDict(frozen=True)

    suite: str
    recipe_hash: str
    packages: dict[str, str]  # Versions of all packages, by name.
    checksums: dict[str, str] = {}  # SHA-256 of each package's archive, by name, from Debian's signed index.


class OwnManifest(Manifest):
    """The contents of a user's own image; recorded in every campaign."""

    source: str  # The name of its file or folder, or its reference.
    digests: dict[str, str]  # SHA-256 of its configuration and of its layers' contents, by name.
    tools: Manifest  # Of tare's image, which holds the client's programs.
    tools_hash: str


def read(place: Path) -> Manifest:
    """Return the manifest of a base in the cache. Raises `ImageError`."""
    try:
        return Manifest.model_validate_json((place / "manifest.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise ImageError(f"the cached base {place} is damaged", fix=f"rm -r {place}; it is then rebuilt") from error
