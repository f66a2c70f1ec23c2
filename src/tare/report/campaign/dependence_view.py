"""The dependence between blocks as data, for a report and for a calibration."""

from __future__ import annotations

from tare.estimates.dependence import Dependence
from tare.report.model import DependenceReport
from tare.report.sentences.notes import dependence_note


def dependence_report(estimate: Dependence | None) -> DependenceReport | None:
    """Return the estimate as data; None without one."""
    if estimate is None:
        return None
    low, high = estimate.interval
    return DependenceReport(
        n_series=estimate.n_series,
        n_blocks=estimate.n_blocks,
        correlation=estimate.correlation,
        low=low,
        high=high,
        bias=estimate.bias,
        p=estimate.p,
        too_narrow=estimate.too_narrow,
        note=dependence_note(estimate),
    )
