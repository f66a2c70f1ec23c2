"""Which studies there are, and at what scales they are run again: known without reading them."""

from __future__ import annotations

import functools
from enum import StrEnum
from importlib import resources

SUFFIX = ".toml"


class Scale(StrEnum):
    """How long a study's profile takes."""

    SCALED = "scaled"  # shorter runs and fewer of them, as the study's file says
    FULL = "full"  # the study's own durations, sizes and numbers of runs


@functools.cache
def names() -> tuple[str, ...]:
    """The studies' names, in order: author and year."""
    files = resources.files("tare.literature").joinpath("studies").iterdir()
    return tuple(sorted(file.name.removesuffix(SUFFIX) for file in files if file.name.endswith(SUFFIX)))
