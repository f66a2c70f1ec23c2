"""Figures of the page's part on footprints, as plain data: Venn diagrams and UpSet plots."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.features.kernel.analysis.overlaps import PAPER_DIRECTORIES, Region, shared
from tare.features.kernel.footprint_report.venn import Venn, venn
from tare.features.kernel.models.footprint_models import LevelReport, Phases, RegionReport
from tare.features.kernel.words import footprint_words as words
from tare.footprint_model import Phase

#: Most bars of one UpSet plot; for the rest only their number is shown.
BARS = 20
#: Most platforms for which diagrams of every three are drawn.
_MAX_PLATFORMS = 4


@dataclass(frozen=True, slots=True)
class RegionBar:
    """A region: the places of its platforms among all, and how many things it has."""

    inside: tuple[int, ...]
    things: int


@dataclass(frozen=True, slots=True)
class Upset:
    """An UpSet plot: the largest regions as bars over the sets; ``hidden``: regions that are no bar, with so many."""

    platforms: list[str]
    sizes: list[int]
    bars: list[RegionBar]
    hidden: int
    hidden_things: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """Diagrams of how the sets of a phase overlap."""

    title: str
    diagrams: list[Venn]
    bars: Upset


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory's Venn diagram."""

    directory: str
    diagram: Venn


_TITLES: dict[Phases, str] = {
    Phase.START: "While it started",
    Phase.STEADY: "While it worked",
    "both": "Start and work together",
}


def overlaps(level: LevelReport) -> list[Overlap]:
    """The best view's overlaps over all workloads, both phases together first."""
    shown = [overlap for overlap in level.overlaps if overlap.view == level.view and overlap.workload is None]
    return [
        Overlap(
            _TITLES[overlap.phase],
            diagrams(overlap.platforms, as_regions(overlap.regions), level.platforms),
            upset(overlap.platforms, as_regions(overlap.regions)),
        )
        for overlap in reversed(shown)
    ]


def by_workload(level: LevelReport) -> list[tuple[str, Venn]]:
    """A diagram per workload, as in the paper (Anjali 2020); only for two or three platforms."""
    if not 2 <= len(level.platforms) <= 3:
        return []
    shown = [overlap for overlap in level.overlaps if overlap.view == level.view and overlap.workload is not None]
    drawn = [
        (str(overlap.workload), venn(overlap.platforms, as_regions(overlap.regions), level.platforms))
        for overlap in shown
    ]
    return [(name, diagram) for name, diagram in drawn if diagram is not None]


def directories(level: LevelReport) -> list[Directory]:
    """Diagrams of the paper's directories in which code ran; only for two or three platforms."""
    if not 2 <= len(level.platforms) <= 3:
        return []
    by_name = {row.directory: row for row in level.directories}
    drawn = (
        (name, venn(list(by_name[name].things), as_regions(by_name[name].regions), level.platforms))
        for name in PAPER_DIRECTORIES
        if name in by_name
    )
    return [Directory(name, diagram) for name, diagram in drawn if diagram is not None]


def as_regions(reports: Sequence[RegionReport]) -> dict[Region, int]:
    """Regions in the form of `tare.features.kernel.analysis.overlaps`."""
    return {tuple(report.platforms): report.things for report in reports}


def upset(names: Sequence[str], regions: Mapping[Region, int]) -> Upset:
    """An UpSet plot: bars of regions over dots for platforms; bars of set sizes (Lex et al., IEEE TVCG 20, 2014)."""
    bars = [
        RegionBar(tuple(names.index(name) for name in region), count)
        for region, count in itertools.islice(regions.items(), BARS)
    ]
    rest = list(regions.values())[BARS:]
    return Upset(list(names), [shared(regions, [name]) for name in names], bars, len(rest), sum(rest))


def note_of(overlap: Overlap) -> str:
    """Return how to read the figures, and what they leave out."""
    bars = overlap.bars
    return words.regions(len(bars.platforms), bars.hidden, bars.hidden_things, circles=bool(overlap.diagrams))


def diagrams(names: Sequence[str], regions: Mapping[Region, int], all_names: Sequence[str]) -> list[Venn]:
    """A Venn diagram of all sets, or for four sets one of every three. ``all_names``: give each set its colour."""
    if len(names) > _MAX_PLATFORMS:
        return []
    triples = itertools.combinations(names, min(len(names), 3))
    drawn = [venn(chosen, _of(regions, chosen), all_names) for chosen in triples]
    return [diagram for diagram in drawn if diagram is not None]


def _of(regions: Mapping[Region, int], names: Sequence[str]) -> dict[Region, int]:
    """The regions of some of the sets alone; regions that differ only in other sets are added up."""
    merged: dict[Region, int] = {}
    for region, count in regions.items():
        inside = tuple(name for name in region if name in names)
        if inside:
            merged[inside] = merged.get(inside, 0) + count
    return dict(sorted(merged.items(), key=lambda item: -item[1]))
