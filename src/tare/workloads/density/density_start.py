"""1, 2, 4 ... starts at once: the duration of a start, and of all of them.

What a user would have prepared (folders, mounts, a network namespace) exists for all of them before the instant at
which all start commands are given. A start ends when a first command (`true`) run inside has returned:
``command`` of `startup`. All run on the campaign's CPUs; a daemon that starts them runs where it may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction
from tare.workloads.apart import StartDensity, density_metrics
from tare.workloads.base import Params


class DensityStart(StartDensity):
    """Parameter: ``most``."""

    name = "density-start"
    title = "starts of 1, 2, 4 ... instances at one instant"
    metrics = density_metrics(
        "ms", Direction.LOWER, "an instance's first command has returned", "the last one's first command has returned"
    )
    work_unit = "start"
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"most": 4}, "full": {"most": 8}}


WORKLOAD = DensityStart()
