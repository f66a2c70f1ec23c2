"""Curves over the number of instances that work at once: a line a platform through its means, in a band of 95 %."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from tare.report.campaign.model import ResultReport
from tare.report.formats.svg import Axis, Drawing, axis_over, plain

_WIDTH, _HEIGHT = 520.0, 270.0
#: Metrics of workloads with several instances (`tare.workloads.apart.density_metrics`): what, and of how many.
_NAME = re.compile(r"(each|total)-([0-9]+)")


@dataclass(frozen=True, slots=True)
class Point:
    """The mean over blocks with so many instances; ``low``, ``high``: its 95 % interval, equal to it of one block."""

    count: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Curves:
    """One quantity over the number of instances, by platform in the report's order."""

    label: str
    platforms: Mapping[str, Sequence[Point]]


def curves_of(results: Sequence[ResultReport]) -> list[Curves]:
    """The curves of one workload's results; none where they are not of several numbers of instances."""
    kinds: dict[str, dict[int, ResultReport]] = {}
    for result in results:
        match = _NAME.fullmatch(result.metric)
        if match:
            kinds.setdefault(match[1], {})[int(match[2])] = result
    return [_curves(by_count) for by_count in kinds.values() if len(by_count) > 1]


def _curves(by_count: Mapping[int, ResultReport]) -> Curves:
    counts = sorted(by_count)
    first = by_count[counts[0]]
    platforms: dict[str, list[Point]] = {each.platform: [] for each in first.platforms}
    for count in counts:
        for own in by_count[count].platforms:
            if own.mean is not None:
                half = 0.0
                if own.sd is not None and own.n_blocks > 1:
                    half = float(stats.t.ppf(0.975, own.n_blocks - 1)) * own.sd / math.sqrt(own.n_blocks)
                platforms[own.platform].append(Point(count, own.mean, own.mean - half, own.mean + half))
    title = first.metric_title.rpartition(" with ")[0] or first.metric_title
    return Curves(f"{title}, {first.unit}", {name: points for name, points in platforms.items() if points})


def draw(curves: Curves, order: Sequence[str]) -> Drawing:
    """The curves; a platform's colour and dashes are those of its place in ``order``."""
    drawing = Drawing(_WIDTH, _HEIGHT, f"{curves.label}, by the number of instances at once")
    drawing.text(52, 10, curves.label, "soft")
    everything = [point for points in curves.platforms.values() for point in points]
    counts = sorted({point.count for point in everything})
    across = Axis(counts[0] * 0.9, counts[-1] * 1.1, 52, _WIDTH - 12, log=True) if counts else Axis(1, 2, 52, 508)
    up = axis_over([each for p in everything for each in (max(0.0, p.low), p.high)], _HEIGHT - 34, 24, zero=True)
    for tick in up.ticks(5):
        drawing.line(52, up.at(tick), _WIDTH - 12, up.at(tick), "grid")
        drawing.text(46, up.at(tick), plain(tick), "soft", "end")
    for count in counts:
        drawing.line(across.at(count), 24, across.at(count), _HEIGHT - 34, "grid")
        drawing.text(across.at(count), _HEIGHT - 22, str(count), "soft", "middle")
    drawing.text(_WIDTH - 12, _HEIGHT - 8, "instances at once", "soft", "end")
    for name, points in curves.platforms.items():
        at = order.index(name)
        there = [f"{across.at(point.count):.1f} {up.at(point.high):.1f}" for point in points]
        back = [f"{across.at(point.count):.1f} {up.at(max(0.0, point.low)):.1f}" for point in reversed(points)]
        drawing.add("path", d=f"M{'L'.join([*there, *back])}z", class_=f"span-of curve-{at % 7}")
        line = "L".join(f"{across.at(point.count):.1f} {up.at(point.mean):.1f}" for point in points)
        means = ", ".join(f"{point.count}: {point.mean:,.5g}" for point in points)
        drawing.add("path", d=f"M{line}", class_=f"curve curve-{at % 7} dash-{at % 6}", title=f"{name}: {means}")
    return drawing
