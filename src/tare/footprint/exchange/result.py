"""Results of requests: footprints or surfaces, and the reason for each that is missing."""

from __future__ import annotations

from dataclasses import dataclass

from tare.footprint_model import Footprint, Surface
from tare.records import Frozen
from tare.store import LeftOut


@dataclass(frozen=True, slots=True)
class Missed:
    """A footprint that is missing in a repeat, and why. ``workload`` None: the platform did not start."""

    platform: str
    workload: str | None
    repeat: int
    reason: str

    def __str__(self) -> str:
        subject = f"{self.workload} on {self.platform}" if self.workload else f"the start of {self.platform}"
        return f"no footprint of {subject} in repeat {self.repeat + 1}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A workload that no walk can run, and why."""

    workload: str
    reason: str

    def __str__(self) -> str:
        return f"{self.workload} is left out: {self.reason}"


class FootprintResult(Frozen):
    """The result of one `tare.footprint.exchange.request.FootprintRequest`, here or in a lab."""

    footprints: tuple[Footprint, ...] = ()  # in the file too, in this order
    missed: tuple[Missed, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    left_out: tuple[LeftOut, ...] = ()  # platforms that do not run there
    warnings: tuple[str, ...] = ()  # what could not be removed, and tracebacks of faults in code

    @property
    def without(self) -> list[str]:
        """A line for each footprint that is missing, and the warnings."""
        left_out = (f"{platform.platform} is left out: {platform.reason}" for platform in self.left_out)
        return [*map(str, self.skipped), *left_out, *map(str, self.missed), *self.warnings]


@dataclass(frozen=True, slots=True)
class SurfaceResult:
    """The result of one `tare.footprint.exchange.request.SurfaceRequest`."""

    surfaces: tuple[Surface, ...] = ()
    left_out: tuple[LeftOut, ...] = ()  # of processes too, which are named as ``pid 1234``
