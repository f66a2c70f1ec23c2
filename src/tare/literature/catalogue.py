"""Names of the studies, and the scales of their profiles, available without reading the studies."""

from __future__ import annotations

import functools
from enum import StrEnum
from importlib import resources

SUFFIX = ".toml"


class Scale(StrEnum):
    """Length of a study's profile."""

    SCALED = "scaled"  # Shorter and fewer runs, as the study's file says.
    FULL = "full"  # The study's own durations, sizes and numbers of runs.


@functools.cache
def names() -> tuple[str, ...]:
    """Return the studies' names (author and year), sorted."""
    files = resources.files("tare.literature").joinpath("studies").iterdir()
    return tuple(sorted(file.name.removesuffix(SUFFIX) for file in files if file.name.endswith(SUFFIX)))
