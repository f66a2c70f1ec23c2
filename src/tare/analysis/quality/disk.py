"""Detection of figures limited by the disk instead of the platform: a disk that is always busy is at its limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from tare.analysis.quality.contamination import Spans
from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.results import MetricResult
from tare.model import CLIENT_BUSY, CLIENT_COST, CPU_COST, HOST_COST, Family, Status
from tare.store import CampaignRecord, Telemetry

#: From this share of the time on, the disk is assumed to be at its limit.
BUSY = 0.90
#: Families whose work may depend on the disk.
_FAMILIES = frozenset({Family.STORAGE, Family.APPLICATION})


def flag_disk(
    record: CampaignRecord, results: Sequence[MetricResult], trials: pl.DataFrame, telemetry: Telemetry
) -> list[MetricResult]:
    """Add a finding to the results if the disk was the limit of a platform and of the baseline.

    The finding needs both, by the median over trials. With one request at a time, the disk is busy whenever nothing
    else takes time, so on the baseline it nearly always is; a platform that adds time to each request leaves the disk
    idle meanwhile. Costs of CPU time have no finding.
    """
    named = {workload.name for workload in record.workloads if workload.family in _FAMILIES}
    shares = _shares(trials.filter(pl.col("workload").cast(pl.String).is_in(named)), telemetry)
    return [
        result
        if result.metric in {CPU_COST, HOST_COST, CLIENT_COST, CLIENT_BUSY}
        else replace(
            result,
            platforms=tuple(
                replace(platform, notes=(*platform.notes, *_findings(shares, record, result, platform.platform)))
                for platform in result.platforms
            ),
        )
        for result in results
    ]


def _findings(
    shares: Mapping[tuple[str, str], float], record: CampaignRecord, result: MetricResult, platform: str
) -> tuple[Finding, ...]:
    share, base = (shares.get((result.workload, name), 0.0) for name in (platform, record.baseline))
    if min(share, base) < BUSY:
        return ()
    return (Finding(FindingKind.DISK_LIMITED, {"busy": share, "baseline_busy": base}),)


def _shares(trials: pl.DataFrame, telemetry: Telemetry) -> dict[tuple[str, str], float]:
    """Return the share of time in which the disk was busy, by workload and platform, for those with data."""
    ended = trials.filter(pl.col("status") == Status.OK)
    if telemetry.host.is_empty() or ended.is_empty():
        return {}
    span_ns = pl.col("at_ns").diff()
    windows = (
        telemetry.host.sort("tick")
        .select(
            "first",
            (pl.col("at") - span_ns / 1e9).alias("begin"),
            pl.col("at").alias("end"),
            (span_ns / 1e9).alias("seconds"),
            (pl.col("disk_busy_ms").diff() * 1e6 / span_ns).clip(0.0, 1.0).alias("busy"),
        )
        .filter(~pl.col("first") & (pl.col("seconds") > 0))
    )
    busy = ended.with_columns(Spans.of(ended).mean(windows, "busy")).drop_nulls("busy")
    medians = busy.group_by("workload", "platform").agg(pl.col("busy").median())
    return {(str(workload), str(platform)): float(share) for workload, platform, share in medians.iter_rows()}
