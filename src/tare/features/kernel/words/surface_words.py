"""Texts of the report on surfaces, the same in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tare.features.kernel.models.surface_models import (
    BesideCallsReport,
    CallRegionReport,
    OursReport,
    ProcessesReport,
    SurfaceReport,
    SurfacesReport,
)
from tare.footprint_model import Abi, Call
from tare.report.sentences.numbers import EMPTY

TITLE = "What a tenant may ask of the kernel"
#: In links of the page.
LINK = "What may be asked of the kernel"
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
#: What the page says of surfaces before its tables and below them.
INTRODUCTION = (
    "An instance of each platform was started, and what its processes on the host may ask of the host's kernel was read"
    " from them: system calls by the seccomp filters that are installed, and the rights that they would be made with."
    " It is what a break-out of the sandbox's own layer would find, and no verdict on security: one allowed call may be"
    " worse than a hundred others."
)
MARKED = (
    "* on one of these platforms for certain arguments only. What each platform answers to each call: the table below"
    " “Raw data”."
)
IN_REACH = "What else is in reach"
SOME_LET_THROUGH = "Let through by some and not by others"
#: The page's download of system calls.
CALLS_TABLE = "system calls: what becomes of each, by platform"
OTHER_WAYS = "other ways into the kernel"
OTHER_CALLS = (
    "Calls of 32-bit programs and of x32 have numbers of their own, and are not in the table above. Writable are mounts"
    " that are not read-only, of filesystems that the host has mounted too, or that set up the kernel; permissions are"
    " not looked at: see the user."
)
#: What the table of surfaces shows.
TABLE = (
    "conditional: as its arguments are. caps: effective capabilities; * in a user namespace of its own. "
    "nnp: no_new_privs. A platform's line has what the most permissive of its counted threads gets."
)
#: Most platforms that a label names.
_LABEL = 3


def kinds(surfaces: Iterable[SurfaceReport]) -> list[Call]:
    """The outcomes of calls that are columns; "trace", which is rare, only where it occurs."""
    columns = list(Call)
    traced = any(surface.counts and surface.counts[Call.TRACE] for surface in surfaces)
    return columns if traced else columns[:-1]


def rows(surface: SurfaceReport) -> Iterator[tuple[str, Mapping[Call, int] | None, bool, ProcessesReport | None]]:
    """Name, counts, whether these may be too low, and rights: a row for the platform, and one per kind if several."""
    counted = [process for process in surface.processes if process.counted]
    if len(counted) == 1:
        yield surface.platform, surface.counts, bool(surface.unread), counted[0]
        return
    yield surface.platform, surface.counts, bool(surface.unread), None
    for process in counted:
        yield called(process), process.counts, False, process


def number(counts: Mapping[Call, int] | None, kind: Call, *, low: bool) -> str:
    """A number of calls, with "?" where it may be too low."""
    return EMPTY if counts is None else f"{counts[kind]}{'?' if low else ''}"


def called(process: ProcessesReport) -> str:
    """The name of a kind of process, and how many there are."""
    name = process.program if process.role in ("sandboxed", "outside") else process.role
    return f"{name} × {process.n}" if process.n > 1 else name


def filters(process: ProcessesReport) -> str:
    """The seccomp mode, or the number of filters."""
    return f"{process.filters} filters" if process.filters > 1 else process.seccomp


def capabilities(process: ProcessesReport) -> str:
    """The number of capabilities, with "*" where they hold only in a user namespace of the sandbox."""
    return f"{len(process.effective)}{'*' if 'user' in process.namespaces else ''}"


def abi(name: str, abi: Abi) -> str:
    """Return how many calls of another system call interface (ABI) can be reached."""
    return f"{name}: not in this kernel" if abi.in_kernel is False else f"{name}: {abi.reachable} of {abi.of}"


def places(surface: SurfaceReport) -> list[str]:
    """Writable places of the host, with their kind."""
    return [f"{place.path} ({place.kind})" for place in surface.writable]


def outside(surface: SurfaceReport) -> list[str]:
    """Kinds of processes that are not counted."""
    return [called(process) for process in surface.processes if not process.counted]


def notes(surfaces: Sequence[SurfaceReport]) -> Iterator[str]:
    """Remarks on single platforms: processes not counted, other kernels, repeated readings."""
    not_counted: dict[str, list[str]] = {}
    for surface in surfaces:
        if names := outside(surface):
            not_counted.setdefault(", ".join(names), []).append(surface.platform)
    yield from (f"not counted of {', '.join(platforms)}: {names}" for names, platforms in not_counted.items())
    for surface in surfaces:
        if surface.kernel != surfaces[0].kernel:
            yield f"{surface.platform} was read on {surface.kernel}"
        if surface.n_read > 1:
            yield f"{surface.platform} was read {surface.n_read} times: this is the last"


def doubts(surfaces: Iterable[SurfaceReport]) -> Iterator[str]:
    """Reasons why counts may be too low."""
    for surface in surfaces:
        for reason in surface.unread:
            yield f"? {surface.platform}: filters of the {reason}"


def columns(shown: Iterable[Call]) -> Markup:
    """Return what the columns of the page's table are."""
    meanings = Markup(" ").join(Markup("<b>{}</b>: {};").format(kind, MEANINGS[kind]) for kind in shown)
    return Markup(
        "A platform's line has what the most permissive of its processes on the tenant's side gets; where these differ,"
        " each kind is below. {} <b>capabilities</b> are the effective ones, with * in a user namespace of the"
        " sandbox's own; <b>user</b> as the host knows it."
    ).format(meanings)


def doubts_note(surfaces: Iterable[SurfaceReport]) -> str:
    """All reasons why counts may be too low, and what that means; "" where there is none."""
    reasons = "".join(f"{reason}. " for reason in doubts(surfaces))
    return f"{reasons}The numbers with a question mark may be too low." if reasons else ""


def region_title(region: CallRegionReport, report: SurfacesReport) -> str:
    """Which platforms let the calls of a region through, and how many they are."""
    who = through(region, report) if region in differing(report) else "all" if region.platforms else "none"
    return f"Let through by {who}: {len(region.calls)}"


def differing(report: SurfacesReport) -> list[CallRegionReport]:
    """The calls that some platforms let through and others do not."""
    n_known = len([surface for surface in report.surfaces if surface.calls is not None])
    return [region for region in report.regions if 0 < len(region.platforms) < n_known]


def alike(report: SurfacesReport) -> list[list[str]]:
    """Platforms grouped by the calls that they let through."""
    by_calls: dict[tuple[int, ...], list[str]] = {}
    for surface in report.surfaces:
        if surface.calls is not None:
            key = tuple(at for at, region in enumerate(report.regions) if surface.platform in region.platforms)
            by_calls.setdefault(key, []).append(surface.platform)
    return list(by_calls.values())


def label(names: Sequence[str]) -> str:
    """A short label for platforms."""
    if len(names) <= _LABEL:
        return ", ".join(names)
    return f"{', '.join(names[: _LABEL - 1])} and {len(names) - _LABEL + 1} more"


def through(region: CallRegionReport, report: SurfacesReport) -> str:
    """The platforms that let a region's calls through, or those that do not, whichever are fewer."""
    without = [name for group in alike(report) for name in group if name not in region.platforms]
    if len(without) <= len(region.platforms):
        return f"all but {', '.join(without)}"
    return f"{', '.join(region.platforms)} alone"


def marked(region: CallRegionReport, report: SurfacesReport) -> list[str]:
    """The calls of a region, with "*" where one of its platforms lets a call through for some arguments only."""
    outcomes = [
        surface.calls
        for surface in report.surfaces
        if surface.platform in region.platforms and surface.calls is not None
    ]
    conditional = {name for calls in outcomes for name, outcome in calls.items() if outcome is Call.CONDITIONAL}
    return [f"{name}*" if name in conditional else name for name in region.calls]


def theirs(row: BesideCallsReport) -> str:
    """A study's figure in its own terms."""
    return f"all except {row.blocked}" if row.blocked is not None else str(row.allowed)


def ours(row: OursReport) -> tuple[str, str, str, str]:
    """Cells of our figure: name, allowed, conditional, and of how many."""
    mark = "" if row.sure else "?"
    name = row.platform if row.part == "whole" else f"its {row.part}"
    numbers = [EMPTY if number is None else f"{number}{mark}" for number in (row.allowed, row.conditional)]
    return name, numbers[0], numbers[1], str(row.of)


@dataclass(frozen=True, slots=True)
class HeldRights:
    """Kinds of processes of a platform with the same capabilities."""

    names: str
    capabilities: tuple[str, ...]


def held(surface: SurfaceReport) -> list[HeldRights]:
    """The counted processes grouped by their capabilities."""
    names_of: dict[tuple[str, ...], list[str]] = {}
    for process in surface.processes:
        if process.counted:
            short = tuple(name.removeprefix("cap_") for name in process.effective)
            names_of.setdefault(short, []).append(process.program if process.role == "sandboxed" else process.role)
    return [HeldRights(", ".join(dict.fromkeys(names)), short) for short, names in names_of.items()]


def heading(surface: SurfaceReport) -> str:
    """Return the table's heading: its kernel, and its number of system calls."""
    return f"What the tenant's side may ask of this kernel: of {surface.of} system calls ({surface.kernel})"


def regions(hidden: int, *, circles: bool) -> str:
    """Return how to read the figure of regions, and what it leaves out."""
    sentences = [
        "A bar is a region: the calls that exactly the platforms with a filled dot below it let through, for all"
        " arguments or for some, and no other. Platforms that let the same calls through are one row."
    ]
    if hidden:
        sentences.append(f"{hidden:,} smaller regions are not drawn.")
    if circles:
        sentences.append("In the circles, areas of sets and of what two of them share are in proportion.")
    return " ".join(sentences)
