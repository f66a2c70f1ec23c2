"""How well a campaign knows each workload by now: how wide its intervals are, not where they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from tare.analysis.evidence import evidence, reference
from tare.analysis.grid import Grid
from tare.analysis.overhead import overhead
from tare.analysis.verdicts import CPU_COST
from tare.store import CampaignRecord, MetricRecord


@dataclass(frozen=True, slots=True)
class Known:
    """The widest 95 % half-width of overheads in a workload, a fraction, and the blocks that it is from.

    None where no platform has an interval.
    """

    half_width: float | None
    n_blocks: int


def widths(record: CampaignRecord, samples: pl.DataFrame) -> dict[str, Known]:
    """By workload, over its headline and its CPU cost and all platforms. ``samples``: as of `tare.store.Store`."""
    parts = samples.partition_by("workload", "metric", as_dict=True, include_key=False)
    found: dict[str, Known] = {}
    for workload in record.workloads:
        widest = Known(None, 0)
        for number, metric in enumerate(workload.metrics):
            part = parts.get((workload.name, metric.name))
            if part is not None and (number == 0 or metric.name == CPU_COST):
                for one in _of_metric(record, metric, part):
                    if widest.half_width is None or (one.half_width or 0.0) > widest.half_width:
                        widest = one
        found[workload.name] = widest
    return found


def blocks_needed(half_width: float, n_blocks: int, target: float) -> int:
    """Blocks for a half-width of ``target``, when ``n_blocks`` gave ``half_width``: it shrinks as their root.

    At most 10^9: nobody waits for more.
    """
    return math.ceil(min(1e9, n_blocks * (half_width / target) ** 2))


def _of_metric(record: CampaignRecord, metric: MetricRecord, part: pl.DataFrame) -> list[Known]:
    grid = Grid.of(part, record.all_arms())
    baseline = grid.of_platform(record.baseline)
    known = []
    for at, arm in enumerate(grid.arms):
        if arm.platform == record.baseline or grid.unfit[[at, *baseline]].any():
            continue
        seen = evidence(grid, at, reference(grid, record.baseline, record.design), record.design)
        if seen.logs is not None:
            known.append(Known(overhead(seen.logs.wide, metric.direction).half_width, seen.n_blocks))
    return known
