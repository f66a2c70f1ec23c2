"""Lines of the kernel beside those published by Anjali, Caraza-Harter and Swift 2020.

Table 2, and every number of lines that the text gives of its Venn diagrams; the diagrams could not be read (see the
study's file).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tare.features.kernel.analysis.footprint_sets import Exposure, Things, View
from tare.features.kernel.analysis.overlaps import place_of, regions, shared
from tare.features.kernel.models.footprint_models import BesideLinesReport
from tare.features.studies import literature
from tare.features.studies.literature import Region, Study
from tare.model import Level

STUDY = "anjali-2020"
_TABLE_2 = "Kernel lines executed"


def beside_lines(exposure: Exposure) -> list[BesideLinesReport]:
    """A row per printed figure; ours is empty where one of its platforms was not counted."""
    study = literature.load(STUDY)
    ours = {platform.study: _ours(exposure, [*platform.run, *platform.like]) for platform in study.run.platform}
    view = exposure.best_view()
    if view is None or not any(ours.values()):
        return []
    return [
        *_table_2(study, exposure, view, ours),
        *(_region(study, exposure, view, ours, region) for region in study.region),
    ]


def _ours(exposure: Exposure, names: list[str]) -> str | None:
    return next((name for name in names if name in exposure.platforms), None)


def _table_2(
    study: Study, exposure: Exposure, view: View, ours: Mapping[str, str | None]
) -> Iterator[BesideLinesReport]:
    figure = study.metric(_TABLE_2)
    shares = {
        derived.platform: derived.value
        for derived in study.text.derived
        if (derived.metric, derived.of) == (_TABLE_2, "share")
    }
    for platform, lines in figure.value.items():
        our_platform = ours.get(platform)
        count = None if our_platform is None else len(exposure.things(our_platform, view))
        yield BesideLinesReport(
            where=figure.where,
            what=f"{platform}: lines executed, all workloads",
            study_lines=int(lines),
            study_share_percent=shares.get(platform),
            platforms=[] if our_platform is None else [our_platform],
            lines=count,
            share_percent=None if count is None or not exposure.known else 100 * count / exposure.known,
        )


def _region(
    study: Study, exposure: Exposure, view: View, ours: Mapping[str, str | None], region: Region
) -> BesideLinesReport:
    figure = study.metric(region.metric)
    names = [*region.inside, *region.outside, *([region.than] if region.than else [])]
    our_names = {name: our_name for name in names if (our_name := ours.get(name)) is not None}
    workloads = [workload for workload in region.workloads if workload in exposure.workloads]
    lines = None
    if len(our_names) == len(names) and (workloads or not region.workloads):
        sets = {
            name: _cut(exposure, platform, view, workloads, region.directory) for name, platform in our_names.items()
        }
        counts = regions(sets)
        lines = shared(counts, region.inside, region.outside) - (shared(counts, [region.than]) if region.than else 0)
    return BesideLinesReport(
        where=figure.where,
        what=f"{', '.join(region.inside)}: {figure.metric}{' (about)' if figure.about else ''}",
        study_lines=int(figure.value[region.inside[0]]),
        study_share_percent=None,
        platforms=list(our_names.values()) if lines is not None else [],
        lines=lines,
        share_percent=None,
    )


def _cut(exposure: Exposure, platform: str, view: View, workloads: list[str], directory: str) -> Things:
    parts = [exposure.things(platform, view, None, workload) for workload in workloads] or [
        exposure.things(platform, view)
    ]
    whole: Things = frozenset().union(*parts)
    if not directory:
        return whole
    place = place_of(Level.LINES)
    return frozenset(line for line in whole if (place(line) or "").startswith(f"{directory}/"))
