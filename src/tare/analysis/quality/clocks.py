"""Accuracy of the clocks inside that timed a platform's trials.

A trial whose clock is surely off by more than half of the margin already counts as failed
(`tare.campaign.instances.inside_clock`). The findings here concern the other trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.results import MetricResult
from tare.model import Status

#: From this rate on a clock has a finding. A crystal's error is a tenth of it, and NTP's correction half of it.
OFF = 0.001


def flag_clocks(workload: str, results: Sequence[MetricResult], trials: pl.DataFrame) -> list[MetricResult]:
    """Add a finding to a workload's results if a clock inside was off, or if nobody can know.

    ``trials``: a frame of `tare.store.Store.trials`. Rates are means over a platform's good trials, as its figures are.
    """
    if "clock_rate_low" not in trials.columns:
        return list(results)
    timed = trials.filter(
        (pl.col("workload").cast(pl.String) == workload)
        & (pl.col("status") == Status.OK)
        & pl.col("clock_rate_low").is_not_null()
    )
    low, high = pl.col("clock_rate_low"), pl.col("clock_rate_high")
    known = timed.group_by(pl.col("platform").cast(pl.String)).agg(
        pl.max_horizontal(low, -high, pl.lit(0.0)).mean().alias("off"),
        (low.mean() + high.mean()).alias("twice"),
        ((high - low) / 2).mean().alias("open"),
    )
    rates = {name: (off, twice / 2, unknown) for name, off, twice, unknown in known.iter_rows()}
    return [
        replace(
            result,
            platforms=tuple(
                replace(platform, notes=(*platform.notes, *_findings(rates.get(platform.platform), result.margin)))
                for platform in result.platforms
            ),
        )
        for result in results
    ]


def _findings(rate: tuple[float, float, float] | None, margin: float) -> list[Finding]:
    if rate is None:
        return []
    off, middle, unknown = rate
    if off > OFF:
        return [Finding(FindingKind.CLOCK_OFF, {"rate": middle, "open": unknown})]
    return [Finding(FindingKind.CLOCK_OPEN, {"open": unknown})] if unknown > margin / 2 else []
