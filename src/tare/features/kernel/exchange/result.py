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
    """A workload that a walk cannot run, and why."""

    workload: str
    reason: str

    def __str__(self) -> str:
        return f"{self.workload} is left out: {self.reason}"


class FootprintResult(Frozen):
    """Result of one `tare.features.kernel.exchange.count_request.FootprintRequest`, carried out here or in a lab."""

    footprints: tuple[Footprint, ...] = ()  # In the file too, in this order.
    missed: tuple[Missed, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    left_out: tuple[LeftOut, ...] = ()  # Platforms that do not run there.
    warnings: tuple[str, ...] = ()  # Resources that could not be removed, and tracebacks of internal errors.

    @property
    def without(self) -> list[str]:
        """Return a line for each missing footprint, and the warnings."""
        left_out = (f"{platform.platform} is left out: {platform.reason}" for platform in self.left_out)
        return [*map(str, self.skipped), *left_out, *map(str, self.missed), *self.warnings]


@dataclass(frozen=True, slots=True)
class SurfaceResult:
    """Result of one `tare.features.kernel.exchange.count_request.SurfaceRequest`."""

    surfaces: tuple[Surface, ...] = ()
    left_out: tuple[LeftOut, ...] = ()  # Includes processes, named ``pid 1234``.
