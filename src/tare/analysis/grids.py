"""A campaign's samples by metric, and each metric's samples laid out by arm, block and round."""

from __future__ import annotations

import polars as pl

from tare.estimates.grid import Grid, harmonic
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord


def metric_parts(samples: pl.DataFrame) -> dict[tuple[str, str], pl.DataFrame]:
    """Return the samples (`tare.store.Store.samples`) by workload and metric, for metrics with samples."""
    parts = samples.partition_by("workload", "metric", as_dict=True, include_key=False)
    return {(str(workload), str(metric)): part for (workload, metric), part in parts.items()}


def grid_of(record: CampaignRecord, workload: WorkloadRecord, metric: MetricRecord, part: pl.DataFrame) -> Grid:
    """Return one metric's samples of all arms, with its way to total rounds, and its step."""
    return Grid.of(
        part, record.all_arms(), harmonic=harmonic(metric.direction, workload.mode), resolution=metric.resolution
    )
