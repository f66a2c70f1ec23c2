"""Contrasts of a campaign: each platform against the baseline, and the baseline against itself."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from tare.analysis.grids import grid_of, metric_parts
from tare.analysis.quality.fairness import refusals
from tare.estimates.contrasts import Contrast, contrast
from tare.estimates.grid import Grid, reference
from tare.estimates.looks import Looks
from tare.estimates.moderated import FigureRow, moderated_looks
from tare.model import Design
from tare.store import CampaignRecord


def contrasts_of(record: CampaignRecord, workload: str, metric: str, grid: Grid) -> dict[FigureRow, Contrast]:
    """Return the contrasts of one metric that have a ratio; empty for a sequential campaign, which pairs no blocks."""
    if record.design is Design.SEQUENTIAL:
        return {}
    base = grid.of_platform(record.baseline)
    against = reference(grid, record.baseline, record.design)
    unlike = refusals(record)
    contrasts = {
        FigureRow(workload, metric, arm.platform): contrast(grid, at, against)
        for at, arm in enumerate(grid.arms)
        if arm.platform != record.baseline and arm.platform not in unlike and not grid.unfit[[at, *base]].any()
    }
    if len(base) > 1 and not grid.unfit[base[:2]].any():
        contrasts[FigureRow(workload, metric, None)] = contrast(grid, base[1], base[:1])
    return contrasts


def campaign_looks(record: CampaignRecord, samples: pl.DataFrame) -> dict[FigureRow, Looks]:
    """Return the moderated looks of a campaign's headlines and CPU costs; empty for a sequential campaign."""
    parts = metric_parts(samples)
    contrasts = {
        (workload.name, metric.name): contrasts_of(
            record, workload.name, metric.name, grid_of(record, workload, metric, part)
        )
        for workload in record.workloads
        for metric in workload.main_metrics
        if (part := parts.get((workload.name, metric.name))) is not None
    }
    return looks_of(record, contrasts)


def looks_of(
    record: CampaignRecord, contrasts: Mapping[tuple[str, str], Mapping[FigureRow, Contrast]]
) -> dict[FigureRow, Looks]:
    """Return the moderated looks of contrasts by metric; headlines and CPU costs predict the variances."""
    main = {(workload.name, metric.name) for workload in record.workloads for metric in workload.main_metrics}
    flat = {figure: seen for of_metric in contrasts.values() for figure, seen in of_metric.items()}
    fitted = frozenset(figure for figure in flat if (figure.workload, figure.metric) in main)
    return moderated_looks(flat, fitted)
