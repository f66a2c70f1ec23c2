"""The manifest of an image: a file of JSON beside its root."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tare.errors import ImageError


class Manifest(BaseModel):
    """What is in an image; recorded in every campaign."""

    model_config = ConfigDict(frozen=True)

    suite: str
    recipe_hash: str
    packages: dict[str, str]  # name -> version, of all packages
    checksums: dict[str, str] = {}  # name -> SHA-256 of its archive, as Debian's signed index has it


class OwnManifest(Manifest):
    """What is in an image that a user brought; recorded in every campaign."""

    source: str  # its file's or folder's name, or the reference
    digests: dict[str, str]  # SHA-256 of its configuration and of its layers' contents, by name
    tools: Manifest  # of tare's image, out of which the client's programs come
    tools_hash: str


def read(place: Path) -> Manifest:
    """The manifest of a base in the cache. Raises `ImageError`."""
    try:
        return Manifest.model_validate_json((place / "manifest.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise ImageError(f"the cached base {place} is damaged", fix=f"rm -r {place}; it is built anew") from error
