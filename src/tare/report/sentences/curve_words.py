"""Words for curves: a rate over the load."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from markupsafe import Markup

from tare.report.sentences.numbers import quantity

if TYPE_CHECKING:
    from tare.report.model import CurveReport, EstimateReport

#: What the drawings of curves show.
BANDS = Markup("Bands and lines through signs: 95&nbsp;% over blocks.")


def load(shown: EstimateReport) -> str:
    """A load that a curve shows, with its interval."""
    return _estimate(shown, "{:g}".format)


def rate(shown: EstimateReport) -> str:
    """A rate that a curve shows, with its interval."""
    return _estimate(shown, figure)


def figure(value: float) -> str:
    """A rate without its unit, which the head has."""
    return quantity(value, "").strip()


def _estimate(shown: EstimateReport, written: Callable[[float], str]) -> str:
    if shown.point is None:
        return "none"
    if shown.low is None or shown.high is None:
        return written(shown.point)
    return f"{written(shown.point)} ({written(shown.low)} to {written(shown.high)})"


def about(curve: CurveReport) -> str:
    """Return what a curve's table has in it."""
    return (
        f"{curve.rate} in {curve.rate_unit} by {curve.unit}, means over blocks. knee: beyond it more {curve.unit} give"
        f" less and less; saturated: the least that give 95 % of the highest rate; best: the highest rate with a"
        f" {curve.latency} of at most {curve.limit:g} {curve.latency_unit}. In brackets: 95 % over blocks, from"
        " three on."
    )
