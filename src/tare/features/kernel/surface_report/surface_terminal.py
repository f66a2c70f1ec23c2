"""Surfaces in a terminal, beside a study's published table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tare.features.kernel.models.surface_models import ProcessesReport, StudyReport, SurfaceReport, SurfacesReport
from tare.features.kernel.words import surface_words as words
from tare.footprint_model import Call, Surface
from tare.report.sentences.numbers import EMPTY
from tare.safe_text import clean

_SHORT: Mapping[Call, str] = {Call.CONDITIONAL: "cond."}
#: Most places, and most calls in which platforms differ, that are named; for the rest only their number is shown.
_FEW, _CALLS = 4, 12


def render(surfaces: Sequence[SurfaceReport]) -> Group:
    """A table of counts and rights, one line per kind of process; then a table of what else can be reached."""
    if not surfaces:
        return Group(Text("no platform was looked at"))
    kinds = words.kinds(surfaces)
    table = _table("platform", *(_SHORT.get(kind, kind) for kind in kinds))
    for name in ("seccomp", "caps", "uid", "namespaces", "nnp", "lsm"):
        table.add_column(name, justify="right" if name in ("caps", "uid") else "left", overflow="fold")
    for surface in surfaces:
        for row in _rows(surface, kinds):
            table.add_row(*row)
        table.add_section()
    return Group(Text(clean(words.heading(surfaces[0])), "bold"), table, *_legend(surfaces), Text(), _reach(surfaces))


def published(study: StudyReport) -> Group:
    """A study's table of allowed calls, beside our counts."""
    table = _table("the study's platform", f"allowed, {study.unit}", "ours", "allowed", "conditional", "of")
    for row in study.rows:
        ours = [_indented(*words.ours(figure), whole=figure.part == "whole") for figure in row.ours] or [[EMPTY] * 4]
        for number, cells in enumerate(ours):
            first = (row.platform, words.theirs(row)) if number == 0 else ("", "")
            table.add_row(*first, *cells)
    head = Text(f"Beside {study.authors}, {study.year} ({study.where})", style="bold")
    return Group(head, table, Text(words.NOTE, style="dim"))


def differing(report: SurfacesReport) -> Iterator[RenderableType]:
    """The calls that some platforms let through and others do not, the largest region first."""
    regions = words.differing(report)
    if regions:
        yield Text()
        yield Text(words.SOME_LET_THROUGH, style="bold")
    for region in regions:
        names = words.marked(region, report)
        more = f" and {len(names) - _CALLS} more" if len(names) > _CALLS else ""
        yield Padding(Text(clean(f"{words.through(region, report)}: {len(names)}")), (0, 0, 0, 2))
        yield Padding(Text(clean(f"{', '.join(names[:_CALLS])}{more}"), style="dim"), (0, 0, 0, 4))


def part(report: SurfacesReport) -> Iterator[RenderableType]:
    """The part of a campaign's report that is on surfaces."""
    yield Text()
    yield render(report.surfaces)
    if report.beside is not None:
        yield published(report.beside)
    yield from differing(report)


def listed(surfaces: Sequence[Surface]) -> Group:
    """The calls of each platform by outcome, with the filters' answers where a call does not always run."""
    parts: list[RenderableType] = []
    for surface in surfaces:
        parts.append(Text(surface.platform, style="bold"))
        for kind in Call:
            names = [_with_answers(name, surface) for name, call in (surface.calls or {}).items() if call is kind]
            if names:
                parts += [Text(f"  {kind.value} ({len(names)})"), Text(f"    {', '.join(names)}", style="dim")]
    return Group(*parts)


def _rows(surface: SurfaceReport, kinds: Sequence[Call]) -> Iterator[list[Text]]:
    for number, (name, counts, low, process) in enumerate(words.rows(surface)):
        style = "" if number else "bold"
        cells = [words.number(counts, kind, low=low) for kind in kinds] + (_rights(process) if process else [""] * 6)
        yield [Text(clean(f"  {name}" if number else name), style), *(Text(clean(cell), style) for cell in cells)]


def _rights(process: ProcessesReport) -> list[str]:
    nnp = "yes" if process.no_new_privs else "no"
    spaces = " ".join(process.namespaces) or EMPTY
    return [words.filters(process), words.capabilities(process), str(process.uid), spaces, nnp, process.label or EMPTY]


def _legend(surfaces: Sequence[SurfaceReport]) -> Iterator[Text]:
    yield Text(words.TABLE, style="dim")
    yield from (Text(clean(line), style="dim") for line in words.notes(surfaces))
    yield from (Text(clean(line), style="yellow") for line in words.doubts(surfaces))


def _reach(surfaces: Sequence[SurfaceReport]) -> Table:
    table = _table("platform")
    for name in (words.OTHER_WAYS, "writable places of the host's", "open devices"):
        table.add_column(name, overflow="fold")
    for surface in surfaces:
        abis = [words.abi(name, abi) for name, abi in surface.abis.items()]
        row = (surface.platform, "\n".join(abis), _some(words.places(surface)), _some(surface.devices))
        table.add_row(*(Text(clean(cell)) for cell in row))
    return table


def _some(names: Iterable[str]) -> str:
    texts = list(names)
    more = [f"and {len(texts) - _FEW} more"] if len(texts) > _FEW else []
    return "\n".join([*texts[:_FEW], *more]) or EMPTY


def _with_answers(name: str, surface: Surface) -> str:
    answers = surface.answers(name)
    return name if answers == ("allow",) else f"{name} ({', '.join(answers)})"


def _indented(name: str, *cells: str, whole: bool) -> list[str]:
    return [clean(name if whole else f"  {name}"), *cells]


def _table(first: str, *rest: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column(first, overflow="fold")
    for name in rest:
        table.add_column(name, justify="left" if name == "ours" else "right")
    return table
