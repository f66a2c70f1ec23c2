"""Surfaces in a terminal and as JSON, with what a study printed of the same beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tare.footprint.model import Call, Surface, Tasks
from tare.literature import Study
from tare.report.cells import EMPTY
from tare.report.clean import clean

SCHEMA = "tare.surface/1"
#: What the study calls the figures of its table 1.
ALLOWED, BLOCKED = "System calls allowed", "System calls blocked"
_RUNS = (Call.ALLOWED, Call.CONDITIONAL)
_KINDS = tuple(call for call in Call if call is not Call.TRACE)
_SHORT = {Call.CONDITIONAL: "cond."}
#: More places than this are told by their number.
_FEW = 4


def render(surfaces: Sequence[Surface], kernel: str) -> Group:
    """The counts and rights, one line a kind of process; then what else can be reached."""
    if not surfaces:
        return Group(Text("no platform was looked at"))
    kinds = [*_KINDS, *([Call.TRACE] if any(one.counts[Call.TRACE] for one in surfaces) else [])]
    table = _table("platform", *(_SHORT.get(kind, kind.value) for kind in kinds))
    for name in ("seccomp", "caps", "uid", "namespaces", "nnp", "lsm"):
        table.add_column(name, justify="right" if name in ("caps", "uid") else "left", overflow="fold")
    for surface in surfaces:
        for row in _rows(surface, kinds):
            table.add_row(*row)
        table.add_section()
    head = f"What the tenant's side may ask of this kernel: of {surfaces[0].of} system calls ({kernel})"
    return Group(Text(head, style="bold"), table, *_legend(surfaces), Text(), _reach(surfaces))


def published(surfaces: Sequence[Surface], study: Study) -> Group | None:
    """A study's table of allowed calls beside ours; None where no platform has one in it."""
    table = _table("the study's platform", "allowed, of 350", "ours", "allowed", "conditional", "of")
    found = False
    allowed, blocked = study.metric(ALLOWED), study.metric(BLOCKED)
    for platform in study.run.platform:
        printed = allowed.value.get(platform.study)
        said = EMPTY if printed is None else f"{printed:.0f}"
        if platform.study in blocked.value:
            said = f"all except {blocked.value[platform.study]:.0f}"
        if said == EMPTY:
            continue
        ours = [one for one in surfaces if one.platform in (*platform.run, *platform.like)]
        found = found or bool(ours)
        rows = [row for one in ours for row in _beside(one)] or [[EMPTY] * 4]
        for number, row in enumerate(rows):
            first = (platform.study, said) if number == 0 else ("", "")
            table.add_row(*first, *row)
    source = study.source
    head = Text(f"Beside {source.authors}, {source.year} ({allowed.where})", style="bold")
    note = "A list of calls counts as allowed there whether or not their arguments are looked at."
    return Group(head, table, Text(note, style="dim")) if found else None


def _beside(surface: Surface) -> Iterator[list[str]]:
    yield [surface.platform, *_known(surface, (str(surface.counts[call]) for call in _RUNS)), str(surface.of)]
    for group in _alike(one for one in surface.tasks if one.role == "sentry"):  # all that a study counts of gVisor
        every = list((group[0].calls or {}).values())
        yield ["  its sentry", *(str(every.count(call)) for call in _RUNS), str(surface.of)]


def listed(surfaces: Sequence[Surface]) -> Group:
    """Which calls, by what becomes of them; with the answers of the filters of those that do not run."""
    parts: list[RenderableType] = []
    for surface in surfaces:
        parts.append(Text(surface.platform, style="bold"))
        for kind in Call:
            names = [_with_answers(name, surface) for name, call in (surface.calls or {}).items() if call is kind]
            if names:
                parts += [Text(f"  {kind.value} ({len(names)})"), Text(f"    {', '.join(names)}", style="dim")]
    return Group(*parts)


def to_data(
    surfaces: Sequence[Surface], left_out: Sequence[Mapping[str, str]], facts: Mapping[str, Any], study: Study
) -> dict[str, Any]:
    """For ``--json``."""
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


def _rows(surface: Surface, kinds: Sequence[Call]) -> Iterator[list[Text]]:
    groups = _alike(one for one in surface.tasks if one.counted)
    if len(groups) == 1:
        yield _row(surface.platform, groups[0], kinds, "bold")
        return
    numbers = _known(surface, (str(surface.counts[kind]) for kind in kinds))
    yield [Text(surface.platform, "bold"), *(Text(number, "bold") for number in numbers), *[Text()] * 6]
    for group in groups:
        yield _row(f"  {_called(group)}", group, kinds, "")


def _row(name: str, group: Sequence[Tasks], kinds: Sequence[Call], style: str) -> list[Text]:
    first = group[0]
    every = list((first.calls or {}).values())
    numbers = [EMPTY if first.calls is None else str(every.count(kind)) for kind in kinds]
    rights = [
        f"{first.filters} filters" if first.filters > 1 else first.seccomp,
        f"{len(first.effective)}{'*' if 'user' in first.namespaces else ''}",
        str(first.uid),
        " ".join(first.namespaces) or EMPTY,
        "yes" if first.no_new_privs else "no",
        clean(first.label or EMPTY),
    ]
    return [Text(name, style), *(Text(number, style) for number in numbers), *map(Text, rights)]


def _called(group: Sequence[Tasks]) -> str:
    first = group[0]
    processes = len({one.pid for one in group})
    name = clean(first.program) if first.role in ("sandboxed", "outside") else first.role
    return f"{name} × {processes}" if processes > 1 else name  # noqa: RUF001 (times)


def _alike(tasks: Iterable[Tasks]) -> list[list[Tasks]]:
    """Those of one role with the same calls and rights together."""
    groups: dict[object, list[Tasks]] = {}
    for one in tasks:
        who = one.role if one.role not in ("sandboxed", "outside") else (one.role, one.program)
        calls = None if one.calls is None else tuple(one.calls.items())
        key = (who, calls, one.seccomp, one.effective, one.uid, one.namespaces, one.no_new_privs, one.label)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _known(surface: Surface, numbers: Iterable[str]) -> list[str]:
    """Counts, with a mark where some filters could not be read; none where nothing is known."""
    if surface.calls is None:
        return [EMPTY for _ in numbers]
    mark = "?" if surface.unread else ""
    return [f"{number}{mark}" for number in numbers]


def _legend(surfaces: Sequence[Surface]) -> Iterator[Text]:
    told = "conditional: as its arguments are. caps: effective capabilities; * in a user namespace of its own. "
    told += "nnp: no_new_privs. A platform's line has what the most permissive of its counted threads gets."
    yield Text(told, style="dim")
    for surface in surfaces:
        outside = [_called(group) for group in _alike(one for one in surface.tasks if not one.counted)]
        if outside:
            yield Text(f"not counted of {surface.platform}: {', '.join(outside)}", style="dim")
        for reason in surface.unread:
            yield Text(clean(f"? {surface.platform}: filters of the {reason}"), style="yellow")


def _reach(surfaces: Sequence[Surface]) -> Table:
    table = _table("platform")
    for name in ("other ways into the kernel", "writable places of the host's", "open devices"):
        table.add_column(name, overflow="fold")
    for surface in surfaces:
        counted = [one for one in surface.tasks if one.counted]
        places = {f"{place.path} ({place.kind})" for one in counted for place in one.writable}
        devices = {device for one in counted for device in one.devices}
        abis = [_abi(name, abi.reachable, abi.of, abi.in_kernel) for name, abi in surface.abis.items()]
        table.add_row(surface.platform, "\n".join(abis), _some(places), _some(devices))
    return table


def _abi(name: str, reachable: int, of: int, in_kernel: bool | None) -> str:
    return f"{name}: not in this kernel" if in_kernel is False else f"{name}: {reachable} of {of}"


def _some(names: Iterable[str]) -> str:
    every = sorted(map(clean, names))  # a tenant may choose them
    more = [f"and {len(every) - _FEW} more"] if len(every) > _FEW else []
    return "\n".join([*every[:_FEW], *more]) or EMPTY


def _with_answers(name: str, surface: Surface) -> str:
    answers = {word for one in surface.tasks if one.counted for word in one.outcomes.get(name, ("allow",))}
    return name if answers == {"allow"} else f"{name} ({', '.join(sorted(answers))})"


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="left" if name == "ours" else "right")
    return table
