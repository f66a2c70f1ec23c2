"""Choices of commands: known to a command's options, and to the code that carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: Busy processes for each CPU in the noisy half.
NEIGHBOURS = 2


class Load(StrEnum):
    """Under which load the baseline is compared with itself."""

    QUIET = "quiet"
    LOADED = "loaded"
    BOTH = "both"


class Listing(StrEnum):
    """The things that `tare list` can list."""

    PLATFORMS = "platforms"
    WORKLOADS = "workloads"
    METRICS = "metrics"


class ProgressStyle(StrEnum):
    """The style of a campaign's progress."""

    AUTO = "auto"  # drawn on a terminal, elsewhere a line a block
    JSON = "json"


class OpenPolicy(StrEnum):
    """A gate's exit code if it cannot tell."""

    APART = "3"  # with an exit code of its own
    PASS = "pass"  # noqa: S105 (no password)
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class ProgressOptions:
    """The style of a campaign's progress; ``metrics``: address and port of the endpoint, None for no endpoint."""

    shown: ProgressStyle
    metrics: str | None
