"""Detection of rates limited by the client instead of the platform, because the load generator has a limit too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.results import MetricResult
from tare.model import CLIENT_BUSY, CLIENT_COST, CPU_COST, HOST_COST
from tare.store import CampaignRecord, WorkloadRecord

#: From this share of its CPUs' time on, the client is assumed to be at its limit.
BUSY = 0.90
#: From this share on, it is near its limit.
NEAR = 0.75
#: From this multiple of the baseline's client CPU time per unit of work on, the client does other work than on the
#: baseline.
DEARER = 2.0
#: Parameters for the number of threads, or their maximum, of load tools with a thread for each of the client's CPUs.
_THREADS = ("threads", "connections", "clients")
#: Load tools that always have one thread.
_ONE_THREAD = ("nginx-ab", "redis", "memcached")


def flag_client(
    record: CampaignRecord, workload: WorkloadRecord, results: Sequence[MetricResult]
) -> list[MetricResult]:
    """Add a finding to a workload's results if the client (nearly) limits a platform or the baseline.

    The baseline has no platform between server and client, so its rate with a busy client is the client's own limit on
    this host; the median over blocks counts. The client's rate with all of its CPUs' time follows from its CPU time for
    a unit of work, under this load and with this platform. If that time is more than `DEARER` times the time with the
    baseline, a second finding says so. Costs of CPU time have no finding, because they stay valid.
    """
    busy = next((result for result in results if result.metric == CLIENT_BUSY), None)
    if busy is None:
        return list(results)
    most = next((_threads(workload.params[name]) for name in _THREADS if name in workload.params), 1)
    single = workload.name.startswith(_ONE_THREAD)
    here = len(record.resources.client_cpus or record.resources.harness_cpus)
    there = here if record.client is None else record.client.cpus
    cpus = 1 if single else min(most, max(1, there))
    shares = {
        platform_result.platform: platform_result.described.median / 100 / cpus
        for platform_result in busy.platforms
        if platform_result.described.median is not None
    }
    base = shares.get(record.baseline, 0.0)
    costs = _costs(results)
    unit = f"{workload.work_unit}s/s"
    notes: dict[str, tuple[Finding, ...]] = {}
    for platform, share in shares.items():
        cost, base_cost = costs.get(platform), costs.get(record.baseline)
        limit = cpus * 1e9 / cost if cost else None
        close = [_finding(share, base, limit, unit)] if share >= NEAR or base >= BUSY else []
        times = cost / base_cost if cost and base_cost else 0.0
        dearer = [Finding(FindingKind.CLIENT_DEARER, {"times": times})] if times > DEARER else []
        notes[platform] = (*close, *dearer)
    flagged = []
    for result in results:
        if result.metric in {CPU_COST, HOST_COST, CLIENT_COST, CLIENT_BUSY}:
            flagged.append(result)
            continue
        platforms = tuple(
            replace(platform_result, notes=(*platform_result.notes, *notes.get(platform_result.platform, ())))
            for platform_result in result.platforms
        )
        flagged.append(replace(result, platforms=platforms))
    return flagged


def _threads(value: object) -> int:
    """Return a parameter as the number of threads that it can be; of a stranger's file it may be anything."""
    return max(1, int(value)) if isinstance(value, int | float) and math.isfinite(value) else 1


def _costs(results: Sequence[MetricResult]) -> dict[str, float | None]:
    """Return the CPU time of the client for a unit of work, in ns, the median over blocks, by platform."""
    cost = next((result for result in results if result.metric == CLIENT_COST), None)
    platforms = cost.platforms if cost is not None else ()
    return {platform_result.platform: platform_result.described.median for platform_result in platforms}


def _finding(share: float, base: float, limit: float | None, unit: str) -> Finding:
    kind = FindingKind.CLIENT_LIMITED if max(share, base) >= BUSY else FindingKind.CLIENT_NEAR
    numbers = {"busy": share, "baseline_busy": base}
    return Finding(kind, numbers if limit is None else {**numbers, "limit": limit}, unit=unit)
