"""Curves of a campaign in the report: from the analysis to the model, and to a table on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from tare.analysis.curves import Curve, Estimate, PlatformCurve, Point
from tare.clean import clean
from tare.report.campaign.model import CurveReport, EstimateReport, PlatformCurveReport, PointReport
from tare.report.sentences import curves as words


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


def _platform(curve: PlatformCurve) -> PlatformCurveReport:
    return PlatformCurveReport(
        platform=curve.platform,
        points=[_point(point) for point in curve.points],
        knee=_estimate(curve.knee),
        saturation=_estimate(curve.saturation),
        best=_estimate(curve.best),
    )


def _point(point: Point) -> PointReport:
    low, high = (None, None) if point.band is None else (point.band.low, point.band.high)
    return PointReport(
        load=point.load, n_blocks=point.n_blocks, rate=point.rate, low=low, high=high, latency=point.latency
    )


def _estimate(shown: Estimate) -> EstimateReport:
    interval = shown.interval
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return EstimateReport(point=shown.point, low=low, high=high)
