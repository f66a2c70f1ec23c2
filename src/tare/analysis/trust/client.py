"""Whether a rate is the client's and not the platform's: what makes an application's load has a limit too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tare.analysis.results import MetricResult
from tare.analysis.trust.findings import Finding, FindingKind
from tare.model import CLIENT_BUSY, CLIENT_COST, CPU_COST, HOST_COST
from tare.store import CampaignRecord, WorkloadRecord

#: From this share of its CPUs' time on the client is taken to have no more to give.
BUSY = 0.90
#: From this share on it is near that.
NEAR = 0.75
#: The parameter of load tools with several threads; others have one.
_THREADS = "threads"


def flag_client(
    record: CampaignRecord, workload: WorkloadRecord, results: Sequence[MetricResult]
) -> list[MetricResult]:
    """The results of a workload's metrics, with a finding where the client (nearly) limits a platform or the baseline.

    The baseline has no platform between server and client, so what it reaches with a busy client is the client's own
    limit on this host; the median over blocks counts. What the client would reach with all of its CPUs' time is known
    from what it spends on a unit of work, under this load and with this platform. Costs of CPU time have no finding:
    they stay what they are.
    """
    busy = next((result for result in results if result.metric == CLIENT_BUSY), None)
    if busy is None:
        return list(results)
    cpus = min(int(workload.params.get(_THREADS, 1)), max(1, len(record.resources.harness_cpus)))
    shares = {
        platform_result.platform: platform_result.described.median / 100 / cpus
        for platform_result in busy.platforms
        if platform_result.described.median is not None
    }
    base = shares.get(record.baseline, 0.0)
    limits = _limits(results, cpus)
    close = {platform for platform, share in shares.items() if share >= NEAR or base >= BUSY}
    unit = f"{workload.work_unit}s/s"
    flagged = []
    for result in results:
        if result.metric in {CPU_COST, HOST_COST, CLIENT_COST, CLIENT_BUSY}:
            flagged.append(result)
            continue
        platforms = tuple(
            replace(
                platform_result,
                notes=(
                    *platform_result.notes,
                    _finding(shares[platform_result.platform], base, limits.get(platform_result.platform), unit),
                ),
            )
            if platform_result.platform in close
            else platform_result
            for platform_result in result.platforms
        )
        flagged.append(replace(result, platforms=platforms))
    return flagged


def _limits(results: Sequence[MetricResult], cpus: int) -> dict[str, float]:
    """Units of work a second that a client with all of its CPUs' time would ask for, by platform."""
    cost = next((result for result in results if result.metric == CLIENT_COST), None)
    medians = (
        {platform_result.platform: platform_result.described.median for platform_result in cost.platforms}
        if cost is not None
        else {}
    )
    return {platform: cpus * 1e9 / median for platform, median in medians.items() if median}


def _finding(share: float, base: float, limit: float | None, unit: str) -> Finding:
    kind = FindingKind.CLIENT_LIMITED if max(share, base) >= BUSY else FindingKind.CLIENT_NEAR
    numbers = {"busy": share, "baseline_busy": base}
    return Finding(kind, numbers if limit is None else {**numbers, "limit": limit}, unit=unit)
