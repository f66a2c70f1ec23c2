"""How the report on surfaces says its figures, the same in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tare.footprint.model import Abi, Call
from tare.report.campaign.cells import EMPTY
from tare.report.surface.model import (
    BesideCallsReport,
    CallRegionReport,
    OursReport,
    ProcessesReport,
    SurfaceReport,
    SurfacesReport,
)

TITLE = "What a tenant may ask of the kernel"
MEANINGS: Mapping[Call, str] = {
    Call.ALLOWED: "the call runs, whatever its arguments are",
    Call.CONDITIONAL: "whether it runs depends on its arguments, or on the address that it comes from",
    Call.ERRNO: "an error in its place",
    Call.TRAP: "a SIGSYS in its place",
    Call.KILL: "the end of the thread or process",
    Call.NOTIFY: "another process is asked",
    Call.TRACE: "a tracer is asked",
}
NOTE = "A list of calls counts as allowed there whether or not their arguments are looked at."
#: Names of platforms that one label holds.
_LABEL = 3


def kinds(surfaces: Iterable[SurfaceReport]) -> list[Call]:
    """What becomes of calls, as columns; tracers are too rare for one that is always there."""
    every = list(Call)
    traced = any(one.counts and one.counts[Call.TRACE] for one in surfaces)
    return every if traced else every[:-1]


def rows(surface: SurfaceReport) -> Iterator[tuple[str, Mapping[Call, int] | None, bool, ProcessesReport | None]]:
    """Name, counts, whether these may be too low, and rights: one row, or one for all and one for each kind below."""
    counted = [one for one in surface.processes if one.counted]
    if len(counted) == 1:
        yield surface.platform, surface.counts, bool(surface.unread), counted[0]
        return
    yield surface.platform, surface.counts, bool(surface.unread), None
    for one in counted:
        yield called(one), one.counts, False, one


def number(counts: Mapping[Call, int] | None, kind: Call, *, low: bool) -> str:
    """How many calls, with a mark where it may be too low."""
    return EMPTY if counts is None else f"{counts[kind]}{'?' if low else ''}"


def called(one: ProcessesReport) -> str:
    """What processes of a kind are called, and how many there are."""
    name = one.program if one.role in ("sandboxed", "outside") else one.role
    return f"{name} × {one.n}" if one.n > 1 else name  # noqa: RUF001 (times)


def filters(one: ProcessesReport) -> str:
    """Which seccomp there is."""
    return f"{one.filters} filters" if one.filters > 1 else one.seccomp


def capabilities(one: ProcessesReport) -> str:
    """How many, with a mark where they hold in a user namespace of the sandbox's own."""
    return f"{len(one.effective)}{'*' if 'user' in one.namespaces else ''}"


def abi(name: str, one: Abi) -> str:
    """Another way into the kernel."""
    return f"{name}: not in this kernel" if one.in_kernel is False else f"{name}: {one.reachable} of {one.of}"


def places(surface: SurfaceReport) -> list[str]:
    """Writable places."""
    return [f"{one.path} ({one.kind})" for one in surface.writable]


def outside(surface: SurfaceReport) -> list[str]:
    """What is not counted."""
    return [called(one) for one in surface.processes if not one.counted]


def notes(surfaces: Sequence[SurfaceReport]) -> Iterator[str]:
    """What a reader has to know of single platforms."""
    not_counted: dict[str, list[str]] = {}
    for one in surfaces:
        if names := outside(one):
            not_counted.setdefault(", ".join(names), []).append(one.platform)
    yield from (f"not counted of {', '.join(platforms)}: {names}" for names, platforms in not_counted.items())
    for one in surfaces:
        if one.kernel != surfaces[0].kernel:
            yield f"{one.platform} was read on {one.kernel}"
        if one.n_read > 1:
            yield f"{one.platform} was read {one.n_read} times: this is the last"


def doubts(surfaces: Iterable[SurfaceReport]) -> Iterator[str]:
    """Why figures may be too low."""
    for one in surfaces:
        for reason in one.unread:
            yield f"? {one.platform}: filters of the {reason}"


def differing(found: SurfacesReport) -> list[CallRegionReport]:
    """The calls that some platforms let through and others do not."""
    every = len([one for one in found.surfaces if one.calls is not None])
    return [one for one in found.regions if 0 < len(one.platforms) < every]


def alike(found: SurfacesReport) -> list[list[str]]:
    """Platforms by what they let through: those with the same calls together."""
    by_calls: dict[tuple[int, ...], list[str]] = {}
    for one in found.surfaces:
        if one.calls is not None:
            key = tuple(at for at, region in enumerate(found.regions) if one.platform in region.platforms)
            by_calls.setdefault(key, []).append(one.platform)
    return list(by_calls.values())


def label(names: Sequence[str]) -> str:
    """Platforms in few words."""
    if len(names) <= _LABEL:
        return ", ".join(names)
    return f"{', '.join(names[: _LABEL - 1])} and {len(names) - _LABEL + 1} more"


def through(region: CallRegionReport, found: SurfacesReport) -> str:
    """Who lets the calls of a region through, by the fewer names: those that do, or those that do not."""
    others = [name for group in alike(found) for name in group if name not in region.platforms]
    if len(others) <= len(region.platforms):
        return f"all but {', '.join(others)}"
    return f"{', '.join(region.platforms)} alone"


def marked(region: CallRegionReport, found: SurfacesReport) -> list[str]:
    """The calls of a region; with * those that one of the platforms lets through for some arguments only."""
    of = [one.calls for one in found.surfaces if one.platform in region.platforms and one.calls is not None]
    return [f"{name}*" if any(calls.get(name) is Call.CONDITIONAL for calls in of) else name for name in region.calls]


def theirs(row: BesideCallsReport) -> str:
    """A study's figure as it says it."""
    return f"all except {row.blocked}" if row.blocked is not None else str(row.allowed)


def ours(row: OursReport) -> tuple[str, str, str, str]:
    """Name, allowed, conditional, of."""
    mark = "" if row.sure else "?"
    name = row.platform if row.part == "whole" else f"its {row.part}"
    numbers = [EMPTY if one is None else f"{one}{mark}" for one in (row.allowed, row.conditional)]
    return name, numbers[0], numbers[1], str(row.of)


@dataclass(frozen=True, slots=True)
class Held:
    """Processes of a platform that have the same capabilities."""

    names: str
    capabilities: tuple[str, ...]


def held(surface: SurfaceReport) -> list[Held]:
    """The capabilities of counted processes, those with the same ones together."""
    found: dict[tuple[str, ...], list[str]] = {}
    for one in surface.processes:
        if one.counted:
            short = tuple(name.removeprefix("cap_") for name in one.effective)
            found.setdefault(short, []).append(one.program if one.role == "sandboxed" else one.role)
    return [Held(", ".join(dict.fromkeys(names)), short) for short, names in found.items()]
