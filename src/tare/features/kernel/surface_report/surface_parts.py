"""Builds the report's part on surfaces, and the data of ``tare surface --json``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tare.features.kernel.models.surface_models import (
    BesideCallsReport,
    CallRegionReport,
    OursReport,
    Part,
    ProcessesReport,
    StudyReport,
    SurfaceReport,
    SurfacesReport,
)
from tare.features.studies import literature
from tare.features.studies.literature import Study
from tare.footprint_model import Abi, Call, Surface, Tasks
from tare.store import Store

SCHEMA = "tare.surface/1"
#: The study whose table of allowed calls is shown beside ours, and the metrics of that table in its file.
STUDY = "anjali-2020"
ALLOWED, BLOCKED = "System calls allowed", "System calls blocked"
_RUNS = (Call.ALLOWED, Call.CONDITIONAL)
#: Roles that many programs of an instance may have: their processes are grouped by program too.
_MANY = ("sandboxed", "outside")


def of_store(store: Store) -> SurfacesReport | None:
    """The report on the surfaces of a file; None where it has none. Raises `StoreError`."""
    record = store.record
    order = [record.baseline, *(platform.name for platform in record.platforms)]
    place = {name: at for at, name in enumerate(dict.fromkeys(order))}
    surfaces = sorted(store.surfaces(), key=lambda surface: place.get(surface.platform, len(place)))
    return surfaces_report(surfaces) if surfaces else None


def surfaces_report(readings: Sequence[Surface], study: Study | None = None) -> SurfacesReport:
    """The report on these surfaces. Of several of one platform the last counts. ``study`` None: `STUDY`."""
    last = {surface.platform: surface for surface in readings}
    names = [surface.platform for surface in readings]
    surfaces = [_surface(surface, names.count(surface.platform)) for surface in last.values()]
    beside = _beside(list(last.values()), study or literature.load(STUDY))
    return SurfacesReport(surfaces=surfaces, regions=_regions(surfaces), beside=beside)


def to_data(
    surfaces: Sequence[Surface], left_out: Sequence[Mapping[str, str]], facts: Mapping[str, Any], study: Study
) -> dict[str, Any]:
    """The data of ``tare surface --json``."""
    figures = [study.metric(ALLOWED), study.metric(BLOCKED)]
    return {
        "schema": SCHEMA,
        **facts,
        "platforms": [
            surface.model_dump(mode="json") | {"counts": {call.value: count for call, count in surface.counts.items()}}
            for surface in surfaces
        ],
        "left_out": list(left_out),
        "published": {
            "study": study.name,
            "platforms": {platform.study: [*platform.run, *platform.like] for platform in study.run.platform},
            "figures": [
                {"metric": figure.metric, "where": figure.where, "unit": figure.unit, **figure.value}
                for figure in figures
            ],
        },
    }


def processes(tasks: Iterable[Tasks]) -> list[ProcessesReport]:
    """Threads grouped by kind, calls and rights, in the order in which a group first occurs."""
    groups: dict[object, list[Tasks]] = {}
    for task in tasks:
        who = (task.role, task.program) if task.role in _MANY else task.role
        calls = None if task.calls is None else tuple(task.calls.items())
        key = (who, task.counted, calls, task.seccomp, task.filters, task.effective, task.uid, task.namespaces)
        groups.setdefault((*key, task.no_new_privs, task.label), []).append(task)
    return [_processes(group) for group in groups.values()]


def _processes(group: Sequence[Tasks]) -> ProcessesReport:
    first = group[0]
    return ProcessesReport(
        role=first.role,
        program=first.program,
        n=len({task.pid for task in group}),
        counted=first.counted,
        counts=_counts(first.calls),
        seccomp=first.seccomp,
        filters=first.filters,
        effective=list(first.effective),
        uid=first.uid,
        namespaces=list(first.namespaces),
        no_new_privs=first.no_new_privs,
        label=first.label,
    )


def _surface(surface: Surface, n_read: int) -> SurfaceReport:
    counted = [tasks for tasks in surface.tasks if tasks.counted]
    places = {(place.path, place.kind): place for tasks in counted for place in tasks.writable}
    return SurfaceReport(
        platform=surface.platform,
        at=surface.at,
        kernel=surface.kernel,
        n_read=n_read,
        of=surface.of,
        counts=_counts(surface.calls),
        calls=None if surface.calls is None else dict(surface.calls),
        unread=list(surface.unread),
        processes=processes(surface.tasks),
        abis={name: Abi.model_validate(abi) for name, abi in surface.abis.items()},
        writable=[places[key] for key in sorted(places)],
        devices=sorted({device for tasks in counted for device in tasks.devices}),
    )


def _counts(calls: Mapping[str, Call] | None) -> dict[Call, int] | None:
    if calls is None:
        return None
    outcomes = list(calls.values())
    return {kind: outcomes.count(kind) for kind in Call}


def _regions(surfaces: Sequence[SurfaceReport]) -> list[CallRegionReport]:
    """Regions of platforms whose calls are known, the largest first; last the calls that no platform lets through."""
    calls_by_platform = {surface.platform: surface.calls for surface in surfaces if surface.calls is not None}
    by_platforms: dict[tuple[str, ...], list[str]] = {}
    for call in dict.fromkeys(call for calls in calls_by_platform.values() for call in calls):
        through = tuple(name for name, calls in calls_by_platform.items() if calls.get(call) in _RUNS)
        by_platforms.setdefault(through, []).append(call)
    ordered = sorted(by_platforms.items(), key=lambda item: (not item[0], -len(item[1])))
    return [CallRegionReport(platforms=list(names), calls=sorted(calls)) for names, calls in ordered]


# --- beside a study ------------------------------------------------------------------------------------------


def _beside(surfaces: Sequence[Surface], study: Study) -> StudyReport | None:
    allowed, blocked = study.metric(ALLOWED), study.metric(BLOCKED)
    rows = []
    for platform in study.run.platform:
        if platform.study not in allowed.value.keys() | blocked.value.keys():
            continue
        by_name = {surface.platform: surface for surface in surfaces}
        ours = [by_name[name] for name in (*platform.run, *platform.like) if name in by_name]
        rows.append(
            BesideCallsReport(
                platform=platform.study,
                allowed=_whole(allowed.value.get(platform.study)),
                blocked=_whole(blocked.value.get(platform.study)),
                ours=[row for surface in ours for row in _ours(surface)],
            )
        )
    if not any(row.ours for row in rows):
        return None
    source = study.source
    return StudyReport(
        study=study.name, authors=source.authors, year=source.year, where=allowed.where, unit=allowed.unit, rows=rows
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _ours(surface: Surface) -> Iterator[OursReport]:
    yield _our(surface, "whole", _counts(surface.calls), sure=not surface.unread)
    # A study counts the sentry's calls alone for gVisor.
    for kind in processes(tasks for tasks in surface.tasks if tasks.role == "sentry"):
        yield _our(surface, "sentry", kind.counts, sure=True)


def _our(surface: Surface, part: Part, counts: Mapping[Call, int] | None, *, sure: bool) -> OursReport:
    by_outcome = counts or {}
    allowed, conditional = by_outcome.get(Call.ALLOWED), by_outcome.get(Call.CONDITIONAL)
    return OursReport(
        platform=surface.platform, part=part, allowed=allowed, conditional=conditional, of=surface.of, sure=sure
    )
