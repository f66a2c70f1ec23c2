"""From surfaces to their part of the report, and to what ``tare surface --json`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tare import literature
from tare.footprint.model import Abi, Call, Surface, Tasks
from tare.literature import Study
from tare.report.surface.model import (
    BesideCallsReport,
    CallRegionReport,
    OursReport,
    Part,
    ProcessesReport,
    StudyReport,
    SurfaceReport,
    SurfacesReport,
)
from tare.store import Store

SCHEMA = "tare.surface/1"
#: Whose table of allowed calls ours stand beside, and what its file calls the figures of it.
STUDY = "anjali-2020"
ALLOWED, BLOCKED = "System calls allowed", "System calls blocked"
_RUNS = (Call.ALLOWED, Call.CONDITIONAL)
#: Roles of which an instance has one kind; of the others the program tells them apart.
_MANY = ("sandboxed", "outside")


def of_store(store: Store) -> SurfacesReport | None:
    """The part on the surfaces of a file; None where it has none. Raises `StoreError`."""
    record = store.record
    order = [record.baseline, *(one.name for one in record.platforms)]
    place = {name: at for at, name in enumerate(dict.fromkeys(order))}
    found = sorted(store.surfaces(), key=lambda one: place.get(one.platform, len(place)))
    return surfaces_report(found) if found else None


def surfaces_report(found: Sequence[Surface], study: Study | None = None) -> SurfacesReport:
    """The whole part. Of several surfaces of a platform the last counts. ``study``: another than the usual one."""
    last = {one.platform: one for one in found}
    names = [one.platform for one in found]
    surfaces = [_surface(one, names.count(one.platform)) for one in last.values()]
    beside = _beside(list(last.values()), study or literature.load(STUDY))
    return SurfacesReport(surfaces=surfaces, regions=_regions(surfaces), beside=beside)


def to_data(
    surfaces: Sequence[Surface], left_out: Sequence[Mapping[str, str]], facts: Mapping[str, Any], study: Study
) -> dict[str, Any]:
    """For ``tare surface --json``."""
    figures = [study.metric(ALLOWED), study.metric(BLOCKED)]
    return {
        "schema": SCHEMA,
        **facts,
        "platforms": [
            one.model_dump(mode="json") | {"counts": {call.value: count for call, count in one.counts.items()}}
            for one in surfaces
        ],
        "left_out": list(left_out),
        "published": {
            "study": study.name,
            "platforms": {one.study: [*one.run, *one.like] for one in study.run.platform},
            "figures": [{"metric": one.metric, "where": one.where, "unit": one.unit, **one.value} for one in figures],
        },
    }


def processes(tasks: Iterable[Tasks]) -> list[ProcessesReport]:
    """Those of one kind with the same calls and rights together, in the order in which they first come."""
    groups: dict[object, list[Tasks]] = {}
    for one in tasks:
        who = (one.role, one.program) if one.role in _MANY else one.role
        calls = None if one.calls is None else tuple(one.calls.items())
        key = (who, one.counted, calls, one.seccomp, one.filters, one.effective, one.uid, one.namespaces)
        groups.setdefault((*key, one.no_new_privs, one.label), []).append(one)
    return [_processes(group) for group in groups.values()]


def _processes(group: Sequence[Tasks]) -> ProcessesReport:
    first = group[0]
    return ProcessesReport(
        role=first.role,
        program=first.program,
        n=len({one.pid for one in group}),
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


def _surface(one: Surface, n_read: int) -> SurfaceReport:
    counted = [tasks for tasks in one.tasks if tasks.counted]
    places = {(place.path, place.kind): place for tasks in counted for place in tasks.writable}
    return SurfaceReport(
        platform=one.platform,
        at=one.at,
        kernel=one.kernel,
        n_read=n_read,
        of=one.of,
        counts=_counts(one.calls),
        calls=None if one.calls is None else dict(one.calls),
        unread=list(one.unread),
        processes=processes(one.tasks),
        abis={name: Abi.model_validate(abi) for name, abi in one.abis.items()},
        writable=[places[key] for key in sorted(places)],
        devices=sorted({device for tasks in counted for device in tasks.devices}),
    )


def _counts(calls: Mapping[str, Call] | None) -> dict[Call, int] | None:
    if calls is None:
        return None
    every = list(calls.values())
    return {kind: every.count(kind) for kind in Call}


def _regions(surfaces: Sequence[SurfaceReport]) -> list[CallRegionReport]:
    """Of platforms whose calls are known, the largest region first; last what none of them lets through."""
    known = {one.platform: one.calls for one in surfaces if one.calls is not None}
    found: dict[tuple[str, ...], list[str]] = {}
    for call in dict.fromkeys(call for calls in known.values() for call in calls):
        through = tuple(name for name, calls in known.items() if calls.get(call) in _RUNS)
        found.setdefault(through, []).append(call)
    ordered = sorted(found.items(), key=lambda one: (not one[0], -len(one[1])))
    return [CallRegionReport(platforms=list(names), calls=sorted(calls)) for names, calls in ordered]


# --- beside a study ------------------------------------------------------------------------------------------


def _beside(surfaces: Sequence[Surface], study: Study) -> StudyReport | None:
    allowed, blocked = study.metric(ALLOWED), study.metric(BLOCKED)
    rows = []
    for platform in study.run.platform:
        if platform.study not in allowed.value.keys() | blocked.value.keys():
            continue
        by_name = {one.platform: one for one in surfaces}
        ours = [by_name[name] for name in (*platform.run, *platform.like) if name in by_name]
        rows.append(
            BesideCallsReport(
                platform=platform.study,
                allowed=_whole(allowed.value.get(platform.study)),
                blocked=_whole(blocked.value.get(platform.study)),
                ours=[row for one in ours for row in _ours(one)],
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


def _ours(one: Surface) -> Iterator[OursReport]:
    yield _our(one, "whole", _counts(one.calls), sure=not one.unread)
    for kind in processes(tasks for tasks in one.tasks if tasks.role == "sentry"):  # all that a study counts of gVisor
        yield _our(one, "sentry", kind.counts, sure=True)


def _our(one: Surface, part: Part, counts: Mapping[Call, int] | None, *, sure: bool) -> OursReport:
    known = counts or {}
    allowed, conditional = known.get(Call.ALLOWED), known.get(Call.CONDITIONAL)
    return OursReport(platform=one.platform, part=part, allowed=allowed, conditional=conditional, of=one.of, sure=sure)
