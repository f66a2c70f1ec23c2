"""The section of the report on how many instances fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from tare.capacity_model import CAPACITY
from tare.features.capacity import views, words
from tare.features.capacity.model import CapacityReport
from tare.report.formats.html import part
from tare.report.model import ResultReport
from tare.report.section import Place, Screen, Section, Source


def build(source: Source) -> CapacityReport | None:
    """Return the section of a campaign, or None if it has no fill."""
    return views.capacity_of(source.store, run_cpu_s(source.results))


def run_cpu_s(results: Sequence[ResultReport]) -> dict[str, float]:
    """Return CPU seconds of a one-shot command by platform, if whole lives were measured."""
    return {
        platform.platform: platform.mean / 1e3
        for result in results
        if (result.workload, result.metric) == ("whole-life", "cpu")
        for platform in result.platforms
        if platform.mean is not None
    }


def terminal(report: CapacityReport, screen: Screen) -> Iterator[RenderableType]:
    """Render the section for the terminal."""
    return views.render_capacity(report, screen.width, picture=screen.picture)


def page(report: CapacityReport, anchor: str) -> str:
    """Render the section for the page."""
    return part("capacity.html", capacity=report, anchor=anchor, words=words, views=views)


SECTIONS = (
    Section(
        "capacity",
        words.TITLE,
        build,
        terminal,
        page,
        place=Place.TOP,
        printed=CapacityReport,
        description="How many instances fit on the host; null where the campaign has no fill.",
        workloads=frozenset({CAPACITY}),
    ),
)
