"""Curves of a campaign in the report: from the analysis to the model, to a table on the terminal, and to drawings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from tare.analysis.curves import Curve, CurvePoint, Estimate, PlatformCurve
from tare.report.campaign import curve_plot
from tare.report.model import CurveReport, EstimateReport, PlatformCurveReport, PointReport
from tare.report.parts.svg import Drawing
from tare.report.sentences import curve_words as words
from tare.safe_text import clean


def curve_reports(curves: Sequence[Curve]) -> list[CurveReport]:
    """The curves as data."""
    return [
        CurveReport(
            name=curve.name,
            unit=curve.unit,
            rate=curve.rate,
            rate_unit=curve.rate_unit,
            latency=curve.latency,
            latency_unit=curve.latency_unit,
            limit=curve.limit,
            platforms=[_platform(platform) for platform in curve.platforms],
        )
        for curve in curves
    ]


def render_curves(curves: Sequence[CurveReport]) -> Iterator[Table | Text]:
    """A table a curve: a row a platform, the rate at each load, and what the curve shows."""
    for curve in curves:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title_justify="left")
        heads = (curve.name, *(f"{point.load:g}" for point in curve.platforms[0].points), "knee", "saturated", "best")
        for head in heads:
            table.add_column(Text(clean(head)), justify="left" if head == curve.name else "right", overflow="fold")
        for platform in curve.platforms:
            figures = ["-" if point.rate is None else words.figure(point.rate) for point in platform.points]
            shown = (words.load(platform.knee), words.load(platform.saturation), words.rate(platform.best))
            table.add_row(*(Text(clean(text)) for text in (platform.platform, *figures, *shown)))
        yield table
        yield Text(clean(words.about(curve)), "dim")


def drawings(curve: CurveReport) -> list[Drawing]:
    """The rate by load, with knees and saturation, and the latency with its limit."""
    by_name = {platform.platform: platform for platform in curve.platforms}
    rates = _present({name: _rates(platform) for name, platform in by_name.items()})
    latencies = _present({name: _latencies(platform) for name, platform in by_name.items()})
    marks = {
        name: [*_mark("knee", by_name[name].knee), *_mark("saturated", by_name[name].saturation)] for name in rates
    }
    drawn = [
        curve_plot.Curves(f"{curve.rate}, {curve.rate_unit}", curve.unit, rates, marks),
        curve_plot.Curves(f"{curve.latency}, {curve.latency_unit}", curve.unit, latencies, limit=curve.limit),
    ]
    return [curve_plot.draw(plot, list(by_name)) for plot in drawn if plot.platforms]


def _rates(curve: PlatformCurveReport) -> list[curve_plot.PlotPoint]:
    return [
        curve_plot.PlotPoint(
            point.load,
            point.rate,
            point.rate if point.low is None else point.low,
            point.rate if point.high is None else point.high,
        )
        for point in curve.points
        if point.rate is not None
    ]


def _latencies(curve: PlatformCurveReport) -> list[curve_plot.PlotPoint]:
    """Without a band: the report has none of a latency."""
    pairs = [(point.load, point.latency) for point in curve.points if point.latency is not None]
    return [curve_plot.PlotPoint(load, latency, latency, latency) for load, latency in pairs]


def _mark(kind: str, shown: EstimateReport) -> list[curve_plot.Mark]:
    if shown.point is None:
        return []
    low, high = (shown.point if end is None else end for end in (shown.low, shown.high))
    return [curve_plot.Mark(kind, shown.point, low, high)]


def _present(curves: Mapping[str, list[curve_plot.PlotPoint]]) -> dict[str, list[curve_plot.PlotPoint]]:
    return {name: points for name, points in curves.items() if points}


def _platform(curve: PlatformCurve) -> PlatformCurveReport:
    return PlatformCurveReport(
        platform=curve.platform,
        points=[_point(point) for point in curve.points],
        knee=_estimate(curve.knee),
        saturation=_estimate(curve.saturation),
        best=_estimate(curve.best),
    )


def _point(point: CurvePoint) -> PointReport:
    low, high = (None, None) if point.band is None else (point.band.low, point.band.high)
    return PointReport(
        load=point.load, n_blocks=point.n_blocks, rate=point.rate, low=low, high=high, latency=point.latency
    )


def _estimate(shown: Estimate) -> EstimateReport:
    interval = shown.interval
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return EstimateReport(point=shown.point, low=low, high=high)
