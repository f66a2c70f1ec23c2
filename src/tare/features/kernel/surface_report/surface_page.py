"""The page's part on surfaces: the data of its template, and its downloads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from tare.features.kernel.footprint_report import footprint_figures as drawn
from tare.features.kernel.footprint_report.footprint_figures import Overlap
from tare.features.kernel.models.surface_models import SurfacesReport
from tare.features.kernel.words import surface_words as words


@dataclass(frozen=True, slots=True)
class SurfaceView:
    """The data of the template; ``overlap`` None: all platforms let the same calls through."""

    report: SurfacesReport
    overlap: Overlap | None


def surface_view(report: SurfacesReport) -> SurfaceView:
    """The data of the template."""
    return SurfaceView(report, _overlap(report))


def note_of(overlap: Overlap) -> str:
    """Return how to read the figure, and what it leaves out."""
    return words.regions(overlap.bars.hidden, circles=bool(overlap.diagrams))


def tables(report: SurfacesReport, stem: str) -> Iterator[tuple[str, str, str]]:
    """Name, title and CSV of the download: a row per system call, its outcome by platform."""
    calls_by_platform = {surface.platform: surface.calls for surface in report.surfaces if surface.calls is not None}
    names = sorted({name for calls in calls_by_platform.values() for name in calls})
    columns = {f"{platform}": [calls.get(name) for name in names] for platform, calls in calls_by_platform.items()}
    whole = pl.DataFrame({"call": names, **columns}, schema=dict.fromkeys(["call", *columns], pl.String))
    yield f"{stem}-surfaces.csv.gz", words.CALLS_TABLE, whole.write_csv()


def _overlap(report: SurfacesReport) -> Overlap | None:
    """The figure; platforms that let the same calls through are one set. None for fewer than two sets."""
    alike = words.alike(report)
    if len(alike) < 2:
        return None
    name_of = {names[0]: words.label(names) for names in alike}
    regions = {
        tuple(label for first, label in name_of.items() if first in region.platforms): len(region.calls)
        for region in report.regions
        if region.platforms
    }
    names = list(name_of.values())
    return Overlap("Let through", drawn.diagrams(names, regions, names), drawn.upset(names, regions))
