"""The page's part on footprints: the data of its template, and its downloads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tare.features.kernel.analysis.footprint_sets import Exposure
from tare.features.kernel.analysis.overlaps import PAPER_DIRECTORIES
from tare.features.kernel.footprint_report import footprint_figures
from tare.features.kernel.footprint_report.flames import Flames, flames, folded
from tare.features.kernel.footprint_report.footprint_figures import Directory, Overlap
from tare.features.kernel.footprint_report.footprint_parts import Exposures
from tare.features.kernel.footprint_report.source_view import SourceFile, source_files
from tare.features.kernel.footprint_report.venn import Venn
from tare.features.kernel.models.footprint_models import DirectoryReport, FootprintsReport, FrequencyReport, LevelReport
from tare.features.kernel.words import footprint_words
from tare.footprint_model import Phase
from tare.model import Level

#: Number of most different directories that are shown, besides top-level directories and those of the paper.
_DIRECTORIES = 24


@dataclass(frozen=True, slots=True)
class LevelView:
    """A level as the template shows it."""

    report: LevelReport
    title: str
    notes: list[str]
    overlaps: list[Overlap]
    by_workload: list[tuple[str, Venn]]
    diagrams: list[Directory]
    frequencies: dict[str, list[FrequencyReport]]  # by workload
    sources: list[SourceFile]


@dataclass(frozen=True, slots=True)
class FootprintView:
    """The whole part as the template shows it."""

    report: FootprintsReport
    levels: list[LevelView]
    flames: list[Flames]


def footprint_view(report: FootprintsReport, exposures: Exposures, sources: Path | None) -> FootprintView:
    """The data of the templates. Raises `UsageError` for a bad ``sources``."""
    levels = [_level(level, exposures[level.level], sources) for level in report.levels]
    return FootprintView(report, levels, flames(report, exposures.get(Level.STACKS)))


def _level(level: LevelReport, exposure: Exposure, sources: Path | None) -> LevelView:
    by_workload: dict[str, list[FrequencyReport]] = {}
    for frequency in level.frequencies:
        by_workload.setdefault(frequency.workload, []).append(frequency)
    return LevelView(
        level,
        footprint_words.LEVELS[level.level],
        footprint_words.notes(level),
        footprint_figures.overlaps(level),
        footprint_figures.by_workload(level),
        footprint_figures.directories(level),
        by_workload,
        source_files(level, exposure, sources),
    )


def rows(level: LevelReport) -> list[DirectoryReport]:
    """The directories of the page's table: top-level ones, the paper's, and of the rest those that differ most."""
    always = {row.directory for row in level.directories if "/" not in row.directory} | set(PAPER_DIRECTORIES)
    deeper = [row for row in level.directories if row.directory not in always]
    differing = {row.directory for row in sorted(deeper, key=lambda row: row.in_all - row.union)[:_DIRECTORIES]}
    return [row for row in level.directories if row.directory in always | differing]


def alone(row: DirectoryReport, platform: str) -> int:
    """Return how many lines or functions of a directory this platform alone ran."""
    return next((region.things for region in row.regions if region.platforms == [platform]), 0)


def sources_given(level: LevelView) -> bool:
    """Return True if the user gave a source tree."""
    return any(source.figure is not None or source.why_not for source in level.sources)


def tables(stem: str, exposures: Exposures) -> Iterator[tuple[str, str, str]]:
    """Name, title and CSV of a download per level: a row per item, its hits per second by platform, scope and phase.

    Stacks are folded instead, for other tools that draw flame graphs.
    """
    for level, exposure in exposures.items():
        if level is Level.STACKS:
            yield f"{stem}-stacks.folded.gz", footprint_words.FOLDED, "".join(f"{line}\n" for line in folded(exposure))
            continue
        yield f"{stem}-{level.value}.csv.gz", footprint_words.hits_table(level), _table(exposure).write_csv()


def _table(exposure: Exposure) -> pl.DataFrame:
    pools = {}
    if exposure.idle is not None:
        pools["idle host"] = exposure.idle
    for platform in exposure.platforms:
        for scope in dict.fromkeys(view.scope for view in exposure.views()):
            for phase in Phase:
                pool = exposure.pool(platform, scope, phase)
                if pool is not None:
                    pools[f"{platform} {scope.value} {phase.value}"] = pool
    names = sorted(set().union(*(pool.hits for pool in pools.values())))
    columns = {name: [float(f"{pool.rate(thing):.6g}") for thing in names] for name, pool in pools.items()}
    return pl.DataFrame({"thing": names, **columns})
