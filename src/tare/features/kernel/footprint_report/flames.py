"""Flame graphs as plain data, and folded stacks for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tare.features.kernel.analysis.footprint_sets import Exposure, PooledFootprints
from tare.features.kernel.analysis.stacks import tree
from tare.features.kernel.footprint_report.stack_parts import cases
from tare.features.kernel.models.footprint_models import FootprintsReport, StacksReport
from tare.footprint_model import Phase, Scope
from tare.safe_text import clean

#: Frames with a smaller share of the samples are less than a pixel wide.
MIN = 0.0008
#: Height of a frame, in pixels.
ROW = 18
#: Stand in place of the workload for a start and for the idle host.
START, IDLE_HOST = "start", "idle"


@dataclass(frozen=True, slots=True)
class Flame:
    """A platform's flame graph; ``figure`` None: it has no samples."""

    report: StacksReport
    figure: Mapping[str, Any] | None
    height: int  # in pixels


@dataclass(frozen=True, slots=True)
class Flames:
    """The graphs of one workload: of the instances' processes, and of the whole host."""

    title: str
    own: list[Flame]
    everybodys: list[Flame]


def flames(report: FootprintsReport, exposure: Exposure | None) -> list[Flames]:
    """The flame graphs by workload; then of the starts and of the idle host."""
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
    """A line per stack, ``platform;workload;process;functions samples``, the format of B. Gregg's FlameGraph.

    Of the instances' processes, or of the whole host where these were not separated. The workload is "start" for starts
    and "idle" for the idle host. ``scope``: only stacks of this scope.
    """
    sampled = list(cases(exposure))
    separated = {(case[0], case[2], case[3]) for case, _ in sampled if case[1] is Scope.INSTANCE}
    for (platform, whose, phase, workload), pool in sampled:
        better = whose is Scope.HOST and (platform, phase, workload) in separated
        if better if scope is None else whose is not scope:
            continue
        head = f"{_frame(platform)};{_frame(workload or (START if phase is Phase.START else IDLE_HOST))}"
        for stack, count in sorted(pool.hits.items()):
            yield f"{head};{clean(stack)} {count}"


def figure(pool: PooledFootprints) -> dict[str, Any]:
    """All frames wide enough to be seen. A frame refers to its name by number, since most names occur many times."""
    nodes = tree(pool.hits, MIN)
    names = list(dict.fromkeys(node.name for node in nodes))
    number = {name: at for at, name in enumerate(names)}
    return {
        "kind": "flame",
        "row": ROW,
        "names": names,
        "frames": [[number[node.name], node.parent, node.samples] for node in nodes],
    }


def _flame(row: StacksReport, pool: PooledFootprints) -> Flame:
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
