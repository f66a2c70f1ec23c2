"""Figures for a paper: one small panel a metric, with the platforms' overheads or their blocks' values.

By matplotlib (an extra): the page's own drawings follow a theme and have no fonts in them, a paper's figure wants
vectors with fonts embedded (TrueType, as publishers ask for), in a column's width. The same file gives the same bytes.
"""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import polars as pl

from tare.analysis.verdicts import VerdictKind
from tare.errors import UsageError
from tare.estimates.intervals import Interval
from tare.report.formats.extras import load
from tare.report.formats.overheads import compared
from tare.report.formats.tables import Picture, Show
from tare.report.model import PlatformReport, Report, ResultReport
from tare.report.parts.escaping import xml
from tare.report.sentences.captions import figure_legend
from tare.report.sentences.scale import is_factor, overheads, times_of
from tare.report.sentences.shown import ShownFigure
from tare.report.sentences.wording import wording

#: Widths of a figure in inches: one column, and a whole page of two.
WIDTHS = {1: 3.35, 2: 7.0}
_ROW, _ABOVE = 0.17, 0.62  # heights in inches: a platform's, and a panel's title with its axis
_MAX_PANELS = 24  # panels of a figure
_LEGEND = {1: 60, 2: 140}  # letters of a line below a figure of so many columns
_TITLE = 34  # letters of a title in one line of the narrowest panel
#: Wong's colours (Nature Methods 8, 2011), which a colour-blind person tells apart; shapes say the same.
_LOOKS = {
    VerdictKind.SLOWER: ("#D55E00", "s"),
    VerdictKind.FASTER: ("#0072B2", "D"),
    VerdictKind.EQUIVALENT: ("#009E73", "o"),
}
_OPEN = ("#666666", "o")  # hollow
_STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
    "font.size": 7,
    "axes.linewidth": 0.6,
    "axes.titlesize": 7,
    "text.parse_math": False,  # a name with $ is no formula
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "tare",
}


@dataclass(frozen=True, slots=True)
class FigureRequest:
    """Which figure is to be drawn.

    ``metrics``: WORKLOAD or WORKLOAD/METRIC, patterns; none: the headlines. ``columns``: 1 or 2.
    """

    show: Show = Show.OVERHEADS
    metrics: Sequence[str] = ()
    platforms: Sequence[str] = ()
    columns: int = 2


def draw(report: Report, samples: pl.DataFrame, request: FigureRequest, picture: Picture) -> bytes:
    """The figure as a file. ``samples``: as of `Store.samples`. Raises `UsageError` where there is nothing to draw."""
    results = _chosen(report, request)
    names = _platforms(report, request)
    matplotlib = load("matplotlib", "tare figure")
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that the font lacks is a box
        matplotlib.rcdefaults()  # and not what the user has set for his own pictures
        matplotlib.rcParams.update(_STYLE)
        across = 1 if request.columns == 1 else min(3, len(results))
        down = math.ceil(len(results) / across)
        size = WIDTHS[request.columns], down * (_ABOVE + _ROW * len(names))
        figure = load("matplotlib.figure", "tare figure").Figure(figsize=size, layout="constrained")
        axes = figure.subplots(down, across, squeeze=False)
        for number, place in enumerate(axes.flat):
            if number >= len(results):
                place.set_axis_off()
            elif request.show is Show.OVERHEADS:
                _overheads(place, results[number], names, labelled=number % across == 0)
            else:
                _blocks(place, results[number], names, samples, labelled=number % across == 0)
        if request.show is Show.OVERHEADS:
            legend = textwrap.fill(figure_legend(report.baseline), _LEGEND[request.columns])
            figure.supxlabel(xml(legend), fontsize=6)
        return _saved(figure, report, picture)


def _chosen(report: Report, request: FigureRequest) -> list[ResultReport]:
    results = [result for result in report.results if _wanted(result, request.metrics) and _has_figure(result)]
    if not results:
        workloads = ", ".join(dict.fromkeys(result.workload for result in report.results)) or "none"
        raise UsageError(
            f"{report.file} has no such figure", fix=f"--metric WORKLOAD or WORKLOAD/METRIC, of {workloads}"
        )
    if len(results) > _MAX_PANELS:
        raise UsageError(f"{len(results)} panels are too many for a figure", fix=f"--metric for at most {_MAX_PANELS}")
    return results


def _wanted(result: ResultReport, metrics: Sequence[str]) -> bool:
    if not metrics:
        return result.headline
    for pattern in metrics:
        workload, slash, metric = pattern.partition("/")
        if fnmatchcase(result.workload, workload) and (
            fnmatchcase(result.metric, metric) if slash else result.headline
        ):
            return True
    return False


def _has_figure(result: ResultReport) -> bool:
    return any(place.op_percent is not None or place.amount is not None for place in result.platforms)


def _platforms(report: Report, request: FigureRequest) -> list[str]:
    names = [platform.name for platform in report.platforms]
    others = compared(report)
    if request.platforms:
        missing = [name for name in request.platforms if name not in names]
        if missing:
            raise UsageError(f"{missing[0]} did not take part in {report.file}", fix=f"name of {', '.join(names)}")
        return [name for name in names if name in request.platforms]
    return [report.baseline, *others] if request.show is Show.BLOCKS else others


def _overheads(axes: Any, result: ResultReport, names: Sequence[str], *, labelled: bool) -> None:
    adds = wording(result.metric, result.unit, result.direction, result.family).amount_first
    places = {place.platform: place for place in result.platforms}
    unit = ""
    shown = {name: ShownFigure.of(result, place) for name, place in places.items()}
    factors = any(figure.times is not None and is_factor(figure.times) for figure in shown.values())
    if not adds:
        margin = result.margin_percent / 100
        ends = times_of(Interval(0.0, -margin, margin), result.direction) if factors else Interval(0.0, -margin, margin)
        scale = 1.0 if factors else 100.0
        axes.axvspan(scale * ends.low, scale * ends.high, color="#000000", alpha=0.06, linewidth=0)
        if factors:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter("{x:g}")  # a range below a decade has no other ticks
    axes.axvline(1 if factors and not adds else 0, color="#000000", linewidth=0.6)
    for row, name in enumerate(names):
        place = places.get(name)
        if place is None:
            continue
        if adds:
            unit = place.amount_unit or unit
            figure = (place.amount, place.amount_low, place.amount_high)
        else:
            figure = _figure(shown[name], factors=factors)
        _point(axes, place, figure, row)
    label = f"added, in {unit}" if adds else "times worse" if factors else "overhead in %"
    _finish(axes, result, names, label, labelled=labelled)


def _figure(shown: ShownFigure, *, factors: bool) -> tuple[float | None, float | None, float | None]:
    """Return what a panel draws of a platform: how many times worse, or the overhead in per cent; and its ends."""
    if shown.times is None:
        return None, None, None
    drawn = shown.times if factors else overheads(shown.times, shown.result.direction)
    scale = 1.0 if factors else 100.0
    if shown.level is None:
        return scale * drawn.point, None, None
    return scale * drawn.point, scale * drawn.low, scale * drawn.high


def _point(axes: Any, place: PlatformReport, figure: tuple[float | None, float | None, float | None], row: int) -> None:
    point, low, high = figure
    if point is None or not math.isfinite(point):
        axes.text(axes.get_xlim()[0], row, " no figure", va="center", color=_OPEN[0], fontsize=6)
        return
    colour, marker = _LOOKS.get(place.verdict, _OPEN)
    if low is not None and high is not None:
        axes.plot([low, high], [row, row], color=colour, linewidth=1.1, solid_capstyle="butt")
    face = colour if place.verdict in _LOOKS else "#FFFFFF"
    axes.plot([point], [row], marker=marker, markersize=3.6, color=colour, markerfacecolor=face, markeredgewidth=0.9)


def _blocks(axes: Any, result: ResultReport, names: Sequence[str], samples: pl.DataFrame, *, labelled: bool) -> None:
    mine = samples.filter((pl.col("workload") == result.workload) & (pl.col("metric") == result.metric))
    medians = mine.group_by("block", "platform", "replica", maintain_order=True).agg(pl.col("value").median())
    for row, name in enumerate(names):
        values = medians.filter(pl.col("platform") == name)["value"].to_list()
        finite = [value for value in values if value is not None and math.isfinite(value)]
        axes.plot(finite, [row] * len(finite), "|", markersize=6, markeredgewidth=0.7, color="#0072B2")
    _finish(axes, result, names, xml(result.unit), labelled=labelled)


def _finish(axes: Any, result: ResultReport, names: Sequence[str], label: str, *, labelled: bool) -> None:
    title = f"{result.workload}, {result.metric}"
    axes.set_title(xml(title if len(title) <= _TITLE else title.replace(", ", ",\n", 1)), loc="left")
    axes.set_xlabel(xml(label))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), [xml(name) for name in names] if labelled else [""] * len(names))
    if axes.get_xscale() == "linear":
        axes.locator_params(axis="x", nbins=5)
    axes.tick_params(width=0.6, length=2.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _saved(figure: Any, report: Report, picture: Picture) -> bytes:
    """Without the time, so that the same campaign gives the same bytes."""
    title = xml(f"tare, campaign {report.id}")
    facts: dict[Picture, dict[str, str | None]] = {
        Picture.PDF: {"Title": title, "CreationDate": None},
        Picture.SVG: {"Title": title, "Date": None},
        Picture.PNG: {"Title": title},
    }
    out = io.BytesIO()
    figure.savefig(out, format=picture.value, dpi=300, metadata=facts[picture])
    return out.getvalue()
