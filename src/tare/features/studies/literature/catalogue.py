"""Names of the studies, and the scales of their profiles, available without reading the studies."""

from __future__ import annotations

import functools
from importlib import resources

SUFFIX = ".toml"


@functools.cache
def names() -> tuple[str, ...]:
    """Return the studies' names (author and year), sorted."""
    files = resources.files("tare.features.studies.literature").joinpath("studies").iterdir()
    return tuple(sorted(file.name.removesuffix(SUFFIX) for file in files if file.name.endswith(SUFFIX)))
