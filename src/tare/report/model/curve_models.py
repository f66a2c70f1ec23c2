"""A rate over the load."""

from __future__ import annotations

from tare.records import Documented


class EstimateReport(Documented):
    """A figure of a curve, with its 95 % interval over blocks."""

    point: float | None
    """The figure; null where the curve shows none."""
    low: float | None
    """Lower end; null below three blocks."""
    high: float | None
    """Upper end."""


class PointReport(Documented):
    """A level of a platform's curve: means over blocks."""

    load: float
    """The load, in the curve's unit."""
    n_blocks: int
    """Blocks with a figure."""
    rate: float | None
    """The rate; null where no trial ended well."""
    low: float | None
    """Lower end of its 95 % band; null below two blocks."""
    high: float | None
    """Upper end."""
    latency: float | None
    """The latency."""


class PlatformCurveReport(Documented):
    """A platform's curve."""

    platform: str
    """The platform."""
    points: list[PointReport]
    """One entry a level, by rising load."""
    knee: EstimateReport
    """The load beyond which more of it gives less and less."""
    saturation: EstimateReport
    """The least load that gives 95 % of the highest rate."""
    best: EstimateReport
    """The highest rate of a level whose latency is at most `limit`; null where none keeps to it."""


class CurveReport(Documented):
    """A rate over the load: a concurrency sweep."""

    name: str
    """Its name; its levels are the workloads `NAME-LOAD`."""
    unit: str
    """Of the load."""
    rate: str
    """The metric that is drawn."""
    rate_unit: str
    """Its unit."""
    latency: str
    """The metric that has a limit."""
    latency_unit: str
    """Its unit."""
    limit: float
    """The limit."""
    platforms: list[PlatformCurveReport]
    """One entry a platform, the baseline first."""
