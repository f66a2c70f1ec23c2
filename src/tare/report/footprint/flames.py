"""Flame graphs as plain data, and folded stacks for other tools that draw them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tare.analysis.exposure.footprints import Exposure, Pool
from tare.analysis.exposure.stacks import tree
from tare.clean import clean
from tare.footprint.model import Phase, Scope
from tare.report.campaign.figures import Figure
from tare.report.footprint.model import FootprintsReport, StacksReport
from tare.report.footprint.stacks import cases

#: Frames with a smaller share of the samples are less than a pixel wide.
MIN = 0.0008
#: Of a frame, in pixels.
ROW = 18
#: What stands for a start, and for the idle host, where a workload's name would.
START, IDLE_HOST = "start", "idle"


@dataclass(frozen=True, slots=True)
class Flame:
    """One platform's graph; ``figure`` None: no sample was taken."""

    report: StacksReport
    figure: Figure | None
    height: int  # in pixels


@dataclass(frozen=True, slots=True)
class Flames:
    """The graphs of one workload, the instances' own and everybody's."""

    title: str
    own: list[Flame]
    everybodys: list[Flame]


def flames(report: FootprintsReport, exposure: Exposure | None) -> list[Flames]:
    """A group a workload; then the starts, and the idle host."""
    if exposure is None:
        return []
    groups: dict[str, list[Flame]] = {}
    for row, (_, pool) in zip(report.stacks, cases(exposure), strict=True):
        groups.setdefault(_group(row), []).append(_flame(row, pool))
    return [
        Flames(
            title,
            [flame for flame in group if flame.report.scope is Scope.INSTANCE],
            [flame for flame in group if flame.report.scope is Scope.HOST],
        )
        for title, group in groups.items()
    ]


def folded(exposure: Exposure, scope: Scope | None = None) -> Iterator[str]:
    """A line a stack, ``platform;workload;process;functions samples``, the form of B. Gregg's tools.

    Of the instances' own processes; of everybody where those were not told apart. The workload is "start" for starts,
    and "idle" for the idle host. ``scope``: of this one alone.
    """
    sampled = list(cases(exposure))
    own = {(case[0], case[2], case[3]) for case, _ in sampled if case[1] is Scope.INSTANCE}
    for (platform, whose, phase, workload), pool in sampled:
        better = whose is Scope.HOST and (platform, phase, workload) in own
        if better if scope is None else whose is not scope:
            continue
        head = f"{_frame(platform)};{_frame(workload or (START if phase is Phase.START else IDLE_HOST))}"
        for stack, count in sorted(pool.hits.items()):
            yield f"{head};{clean(stack)} {count}"


def figure(pool: Pool) -> Figure:
    """All frames that are wide enough to be seen: names by their number, as most come more than once."""
    nodes = tree(pool.hits, MIN)
    names = list(dict.fromkeys(node.name for node in nodes))
    number = {name: at for at, name in enumerate(names)}
    return {
        "kind": "flame",
        "row": ROW,
        "names": names,
        "frames": [[number[node.name], node.parent, node.samples] for node in nodes],
    }


def _flame(row: StacksReport, pool: Pool) -> Flame:
    if not row.samples:
        return Flame(row, None, 0)
    drawn, depths = figure(pool), list[int]()
    for _, parent, _ in drawn["frames"]:
        depths.append(depths[parent] + 1 if parent >= 0 else 1)
    return Flame(row, drawn, ROW * max(depths) + 8)


def _group(row: StacksReport) -> str:
    if row.workload is not None:
        return row.workload
    return "While it started" if row.phase is Phase.START else "The idle host"


def _frame(name: str) -> str:
    return clean(name).replace(";", ":")
