"""Builds the report's part on footprints."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tare.analysis.refusals import NoAnswer
from tare.errors import UsageError
from tare.features.kernel.analysis.attack_profile import AttackProfile, BugDensities, attack_profile
from tare.features.kernel.analysis.footprint_sets import Exposure, Things, View
from tare.features.kernel.analysis.frequencies import Frequency, frequencies
from tare.features.kernel.analysis.overlaps import Place, Region, by_directory, by_file, place_of, regions
from tare.features.kernel.analysis.unseen import chao2, jaccards
from tare.features.kernel.footprint_report.beside_lines import STUDY, beside_lines
from tare.features.kernel.footprint_report.instruction_parts import instructions_report
from tare.features.kernel.footprint_report.stack_parts import stacks_report
from tare.features.kernel.models.footprint_models import (
    AttackProfileReport,
    DirectoryReport,
    FileReport,
    FootprintsReport,
    FrequencyReport,
    InstructionsReport,
    LevelReport,
    OverlapReport,
    Phases,
    RatioReport,
    RegionReport,
    SetReport,
)
from tare.footprint_model import Footprint, Phase
from tare.inputs import read_text
from tare.model import Level
from tare.report.sentences.refusal_words import refusal_text
from tare.store import Store

#: Number of source files that the report names and the page shows.
FILES = 20
#: How many calls, functions or lines by workload are in each of the two tables of what differs most.
TOP = 12

#: The levels that are counted as sets; stacks are samples, instructions amounts.
SETS = (Level.SYSCALLS, Level.FUNCTIONS, Level.LINES)

_FIX = "CSV with the columns name and file: do_mmap,mm/mmap.c"

Exposures = Mapping[Level, Exposure]


@dataclass(frozen=True, slots=True)
class FootprintInputs:
    """A user's inputs for footprints beside the campaign's file."""

    densities: BugDensities = field(default_factory=BugDensities)
    files: Mapping[str, str] = field(default_factory=dict)  # source file by name of function
    sources: Path | None = None  # the kernel's source tree


def read_files(file: Path) -> dict[str, str]:
    """Source files of functions from a CSV file with the columns name and file. Raises `UsageError`."""
    rows = csv.DictReader(io.StringIO(read_text(file, _FIX), newline=""))
    if set(rows.fieldnames or ()) != {"name", "file"}:
        raise UsageError(f"{file} has not the two columns name and file", fix=_FIX)
    return {row["name"]: row["file"] for row in rows}


def exposures(footprints: Iterable[Footprint], platforms: Iterable[str] = ()) -> Exposures:
    """Footprints by level, in the order of `Level`.

    They were counted in random order and are sorted: ``platforms`` first, in their order, and workloads by name.
    """
    by_level: dict[Level, list[Footprint]] = {}
    for footprint in footprints:
        by_level.setdefault(footprint.level, []).append(footprint)
    place = {name: at for at, name in enumerate(platforms)}

    def order(footprint: Footprint) -> tuple[int, str]:
        return place.get(footprint.platform, len(place)), footprint.workload or ""

    return {level: Exposure(sorted(by_level[level], key=order)) for level in Level if level in by_level}


def of_store(store: Store) -> Exposures:
    """The footprints of a file, the baseline first, then in the order of its record. Raises `StoreError`."""
    record = store.record
    return exposures(store.footprints(), [record.baseline, *(platform.name for platform in record.platforms)])


def footprints_report(exposures_by_level: Exposures, baseline: str, inputs: FootprintInputs) -> FootprintsReport | None:
    """The report on all footprints; None where the file has none."""
    if not exposures_by_level:
        return None
    lines = exposures_by_level.get(Level.LINES)
    beside = [] if lines is None else beside_lines(lines)
    return FootprintsReport(
        levels=[_level(exposure, baseline, inputs) for level, exposure in exposures_by_level.items() if level in SETS],
        weights=inputs.densities.title,
        uniform=inputs.densities.uniform,
        beside=beside,
        study=STUDY if beside else None,
        stacks=stacks_report(exposures_by_level[Level.STACKS]) if Level.STACKS in exposures_by_level else [],
        instructions=_instructions(exposures_by_level),
    )


def _instructions(exposures_by_level: Exposures) -> list[InstructionsReport]:
    exposure = exposures_by_level.get(Level.INSTRUCTIONS)
    return [] if exposure is None else instructions_report(exposure)


def phase_of(name: Phases) -> Phase | None:
    """The phase by its name; None for both together."""
    return None if name == "both" else Phase(name)


def phases(exposure: Exposure) -> list[Phases]:
    """The names of the counted phases, and "both" where there are two."""
    names: list[Phases] = [*exposure.phases()]
    return [*names, "both"] if len(names) > 1 else names


def sets_of(exposure: Exposure, view: View, phase: Phases, workload: str | None = None) -> dict[str, Things]:
    """The set of each platform that was counted in this view, phase and workload."""
    at = phase_of(phase)
    return {
        name: exposure.things(name, view, at, workload)
        for name in exposure.platforms
        if exposure.counted(name, view.scope, at, workload)
    }


def _level(exposure: Exposure, baseline: str, inputs: FootprintInputs) -> LevelReport:
    view, whole = exposure.best_view(), phases(exposure)
    base = baseline if baseline in exposure.platforms else next(iter(exposure.platforms), baseline)
    place = place_of(exposure.level, inputs.files)
    sets = {} if view is None else sets_of(exposure, view, whole[-1])
    files = list(_files(sets, place)) if exposure.level is Level.LINES else []
    placed = exposure.level is Level.LINES or (exposure.level is Level.FUNCTIONS and bool(inputs.files))
    return LevelReport(
        level=exposure.level,
        platforms=list(exposure.platforms),
        baseline=base,
        workloads=list(exposure.workloads),
        phases=whole,
        views=list(exposure.views()),
        view=view,
        known=exposure.known,
        idle_seconds=exposure.idle.seconds if exposure.idle else None,
        idle_things=len(exposure.idle.hits) if exposure.idle else None,
        reading_things=None if exposure.left is None else len(exposure.left),
        sets=list(_sets(exposure)),
        overlaps=list(_overlaps(exposure)),
        directories=_directories(sets, place) if placed else [],
        frequencies=[
            _frequency(frequency)
            for workload in exposure.workloads
            for frequency in frequencies(exposure, workload, base, top=TOP)
        ],
        attack_profiles=list(_profiles(exposure, view, base, inputs.densities, place)) if view else [],
        files=files[:FILES],
        n_files=len(files),
    )  # fmt: skip


# --- sets --------------------------------------------------------------------------------------------------


def _cases(exposure: Exposure) -> Iterator[tuple[View, Phases, str | None]]:
    """The sets to report: of each view and phase over all workloads, and of each workload together with the start."""
    for view in exposure.views():
        for phase in phases(exposure):
            yield view, phase, None
        for workload in exposure.workloads:
            yield view, phases(exposure)[-1], workload


def _sets(exposure: Exposure) -> Iterator[SetReport]:
    for view, phase, workload in _cases(exposure):
        for platform, members in sets_of(exposure, view, phase, workload).items():
            yield _set(exposure, platform, view, phase, workload, members)


def _set(
    exposure: Exposure, platform: str, view: View, phase: Phases, workload: str | None, members: Things
) -> SetReport:
    repeats = exposure.repeats(platform, view, phase_of(phase), workload)
    why, shares, estimate = None, [], None
    try:
        shares, estimate = jaccards(repeats), chao2(repeats)
    except NoAnswer as error:
        why = refusal_text(error.refusal)
    return SetReport(
        platform=platform,
        view=view,
        phase=phase,
        workload=workload,
        n_repeats=len(repeats),
        things=len(members),
        share_percent=100 * len(members) / exposure.known if exposure.known else None,
        lost=sum(footprint.lost for footprint in exposure.counted(platform, view.scope, phase_of(phase), workload)),
        jaccard_mean=sum(shares) / len(shares) if shares else None,
        jaccard_least=min(shares, default=None),
        estimate=estimate.point if estimate else None,
        estimate_low=estimate.low if estimate else None,
        estimate_high=estimate.high if estimate else None,
        why_no_estimate=why,
        lacking=list(exposure.lacking(platform, view.scope)) if workload is None and phase is not Phase.START else [],
    )


def _overlaps(exposure: Exposure) -> Iterator[OverlapReport]:
    for view, phase, workload in _cases(exposure):
        sets = sets_of(exposure, view, phase, workload)
        if len(sets) > 1:
            yield OverlapReport(
                view=view,
                phase=phase,
                workload=workload,
                platforms=list(sets),
                regions=_regions(regions(sets)),
            )


def _regions(counts: Mapping[Region, int]) -> list[RegionReport]:
    return [RegionReport(platforms=list(names), things=count) for names, count in counts.items()]


def _directories(sets: Mapping[str, Things], place: Place) -> list[DirectoryReport]:
    cut = by_directory(sets, place)
    reports = []
    for directory, parts in cut.items():
        counts = regions(parts)
        reports.append(
            DirectoryReport(
                directory=directory,
                things={name: len(part) for name, part in parts.items()},
                union=sum(counts.values()),
                in_all=counts.get(tuple(sets), 0),
                regions=_regions(counts),
            )
        )
    return reports


def _files(sets: Mapping[str, Things], place: Place) -> Iterator[FileReport]:
    """The files in which platforms differ, first those with most lines that one platform alone ran."""
    reports = []
    for file, parts in by_file(sets, place).items():
        counts = regions(parts)
        union, in_all = sum(counts.values()), counts.get(tuple(sets), 0)
        if union > in_all:
            by_platform = {name: len(part) for name, part in parts.items()}
            exclusive = {name: counts.get((name,), 0) for name in parts}
            reports.append(FileReport(file=file, things=by_platform, exclusive=exclusive, union=union, in_all=in_all))
    yield from sorted(
        reports, key=lambda report: (-sum(report.exclusive.values()), report.in_all - report.union, report.file)
    )


# --- rates and profiles --------------------------------------------------------------------------------------


def _frequency(frequency: Frequency) -> FrequencyReport:
    ratios = {
        name: RatioReport(point=ratio.point, low=ratio.low, high=ratio.high, sure=ratio.sure)
        for name, ratio in frequency.ratios.items()
    }
    return FrequencyReport(
        workload=frequency.workload,
        thing=frequency.thing,
        rates=dict(frequency.rates),
        ratios=ratios,
        everywhere=frequency.everywhere,
    )


def _profiles(
    exposure: Exposure, view: View, baseline: str, densities: BugDensities, place: Place
) -> Iterator[AttackProfileReport]:
    for phase in phases(exposure):
        profiles: dict[str, AttackProfile] = {
            name: attack_profile(members, densities, place) for name, members in sets_of(exposure, view, phase).items()
        }
        for name, profile in profiles.items():
            share = 100 * profile.things / exposure.known if densities.uniform and exposure.known else None
            yield AttackProfileReport(
                platform=name,
                phase=phase,
                score=profile.score,
                things=profile.things,
                by_default=profile.by_default,
                share_percent=share,
                of_baseline=profile.of(profiles[baseline]) if baseline in profiles else None,
            )
