"""An image in the store of Docker or Podman: where its layers lie, and what they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tare.image.forms import disk_bytes
from tare.platforms.base import Prepared


def stored(tag: str, image: Mapping[str, Any], programs: Sequence[str]) -> Prepared:
    """Return the form of an image that ``inspect`` shows, started by these programs.

    Its size is that of the layers' folders, or where those are not known the one that ``inspect`` shows.
    """
    layers = layers_of(image)
    size = sum(map(disk_bytes, layers)) if layers else int(image["Size"])
    return Prepared(f"image {tag}", size, layers, tuple(programs))


def layers_of(image: Mapping[str, Any]) -> tuple[Path, ...]:
    """Return the places of an image's layers on this host, by ``inspect``; empty if the daemon does not show them."""
    data = (image.get("GraphDriver") or {}).get("Data") or {}
    named = [data.get("UpperDir"), *(data.get("LowerDir") or "").split(":")]
    layers = tuple(Path(name) for name in named if name)
    return layers if all(layer.is_dir() for layer in layers) else ()
