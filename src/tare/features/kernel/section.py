"""The sections of the report on surfaces and footprints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup
from pydantic import PrivateAttr
from rich.console import RenderableType

from tare.features.kernel.analysis.attack_profile import BugDensities, load_densities
from tare.features.kernel.footprint_report import footprint_figures, footprint_terminal, venn
from tare.features.kernel.footprint_report import footprint_page as footprint_pages
from tare.features.kernel.footprint_report import footprint_parts as footprints_of
from tare.features.kernel.footprint_report.flames import folded
from tare.features.kernel.footprint_report.footprint_parts import (
    Exposures,
    FootprintInputs,
    exposures,
    footprints_report,
)
from tare.features.kernel.footprint_report.upset_drawings import upset
from tare.features.kernel.models.footprint_models import FootprintsReport
from tare.features.kernel.models.surface_models import SurfacesReport
from tare.features.kernel.surface_report import surface_page as surface_pages
from tare.features.kernel.surface_report import surface_parts as surfaces_of
from tare.features.kernel.surface_report import surface_terminal
from tare.features.kernel.words import footprint_page_words, footprint_words, surface_words
from tare.model import Level
from tare.report.formats.html import part
from tare.report.section import Place, Screen, Section, Source
from tare.store import Store

_TEMPLATES = Path(__file__).with_name("templates")


class Footprints(FootprintsReport):
    """The report on footprints, with their counts and the user's source tree for the page."""

    _exposures: Exposures = PrivateAttr(default_factory=dict)
    _sources: Path | None = PrivateAttr(None)

    @property
    def counted(self) -> Exposures:
        """All footprints by level."""
        return self._exposures

    @property
    def sources(self) -> Path | None:
        """The kernel's source tree."""
        return self._sources


def _footprints(source: Source) -> Footprints | None:
    counted, inputs = footprints_of.of_store(source.store), _inputs(source.options)
    report = footprints_report(counted, source.store.record.baseline, inputs)
    if report is None:
        return None
    footprints = Footprints.model_construct(**dict(report))
    footprints._exposures, footprints._sources = counted, inputs.sources
    return footprints


def _inputs(options: Mapping[str, Any]) -> FootprintInputs:
    return FootprintInputs(
        densities=load_densities(options["weights"]) if "weights" in options else BugDensities(),
        files=footprints_of.read_files(options["functions"]) if "functions" in options else {},
        sources=options.get("sources"),
    )


def _print_footprints(report: Footprints, _screen: Screen) -> Iterator[RenderableType]:
    return footprint_terminal.render(report)


def _footprint_page(report: Footprints, anchor: str) -> Markup:
    shown = footprint_pages.footprint_view(report, report.counted, report.sources)
    parts = (
        ("footprint.html", shown.levels),
        ("flames.html", shown.flames),
        ("instructions.html", report.instructions),
    )
    return Markup().join(
        part(
            template,
            shown=shown,
            prefix=_prefix(anchor),
            words=footprint_words,
            footprint_page=footprint_page_words,
            venn_width=venn.WIDTH,
            venn_height=venn.HEIGHT,
            drawn=upset,
            bars_note=footprint_figures.note_of,
            directory_rows=footprint_pages.rows,
            alone=footprint_pages.alone,
            sources_given=footprint_pages.sources_given,
        )
        for template, there in parts
        if there
    )


def _footprint_links(report: Footprints, anchor: str) -> Iterator[tuple[str, str]]:
    if report.levels:
        yield anchor, footprint_page_words.LINK
    if report.stacks:
        yield f"{_prefix(anchor)}-flames", footprint_page_words.FLAMES_LINK


def _footprint_downloads(report: Footprints, stem: str) -> Iterator[tuple[str, str, str]]:
    return footprint_pages.tables(stem, report.counted)


def _stacks(store: Store) -> Iterator[str]:
    """Yield a line per stack, repeats pooled."""
    sampled = (footprint for footprint in store.footprints() if footprint.level is Level.STACKS)
    platforms = [store.record.baseline, *(platform.name for platform in store.record.platforms)]
    exposure = exposures(sampled, platforms).get(Level.STACKS)
    return folded(exposure) if exposure is not None else iter(())


def _surfaces(source: Source) -> SurfacesReport | None:
    return surfaces_of.of_store(source.store)


def _print_surfaces(report: SurfacesReport, _screen: Screen) -> Iterator[RenderableType]:
    return surface_terminal.part(report)


def _surface_page(report: SurfacesReport, anchor: str) -> Markup:
    return part(
        "surface.html",
        shown=surface_pages.surface_view(report),
        prefix=_prefix(anchor),
        words=footprint_words,
        surface_words=surface_words,
        surface_note=surface_pages.note_of,
        venn_width=venn.WIDTH,
        venn_height=venn.HEIGHT,
        drawn=upset,
    )


def _prefix(anchor: str) -> str:
    """Return the beginning of all ids of a campaign's elements."""
    return anchor.rpartition("-")[0]


SECTIONS = (
    Section(
        "surfaces",
        surface_words.LINK,
        _surfaces,
        _print_surfaces,
        _surface_page,
        place=Place.LAST,
        printed=SurfacesReport,
        description="What tenants may ask of the host's kernel; null where the file has none.",
        downloads=surface_pages.tables,
        untimed=True,
    ),
    Section(
        "footprints",
        footprint_page_words.LINK,
        _footprints,
        _print_footprints,
        _footprint_page,
        place=Place.LAST,
        printed=FootprintsReport,
        description="What ran of the host's kernel; null where the file has none.",
        links=_footprint_links,
        scripts=(_TEMPLATES / "footprint.js", _TEMPLATES / "flames.js"),
        downloads=_footprint_downloads,
        lines={"stacks": _stacks},
        untimed=True,
    ),
)
