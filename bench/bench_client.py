"""The report's findings on rows in which the client does much of the work: redis, with one request and with pipelines.

    scripts/own-host NAME .venv/bin/python bench/bench_client.py [PLATFORM...]

`redis` as it is asks once and waits for the answer; `redis-connections-50` here sends 64 requests before it waits.
redis-benchmark has one thread; which of the two is nearer to its limit depends on the host. Printed is a row for each
workload and platform: the rate, how busy the client was, its CPU time for a request, the report's findings on it, and
the workload that stands for the platform's applications. Goal: where the client is the limit, the row says so and does
not stand for the dimension.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench_designs import Silent

from tare.analysis.quality.findings import NOT_THE_PLATFORMS, FindingKind
from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.model import CLIENT_BUSY, CLIENT_COST
from tare.report.campaign.report_builder import build
from tare.report.model import PlatformReport, Report

PLATFORMS = ("runc",)
WORKLOADS = ("redis", "redis-connections-50")
PIPELINED = {"requests": 200_000, "windows": 6, "connections": 50, "pipeline": 64, "size": 64, "keys": 3_000}
ON_THE_CLIENT = {*NOT_THE_PLATFORMS, FindingKind.CLIENT_NEAR}


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "client.tare")
        request = CampaignRequest(
            platforms=sys.argv[1:] or list(PLATFORMS),
            workloads=list(WORKLOADS),
            params={WORKLOADS[1]: PIPELINED},
            blocks=3,
            seed=1,
        )
        run_campaign.begin(request, file, Silent())
        report = build(file)
    print(
        "| workload | platform | rate | client busy | its CPU time a request | said of it | stands for applications |"
    )
    print(f"|{' --- |' * 7}")
    for name in WORKLOADS:
        for platform in next(result for result in report.results if result.workload == name).platforms:
            print(f"| {name} | {platform.platform} | {' | '.join(cells(report, name, platform))} |", flush=True)


def cells(report: Report, workload: str, platform: PlatformReport) -> list[str]:
    """The figures of a platform in a workload, and what the report makes of them."""
    means = {
        result.metric: entry.mean
        for result in report.results
        if result.workload == workload
        for entry in result.platforms
        if entry.platform == platform.platform
    }
    said = [caution.text for caution in platform.cautions if caution.kind in ON_THE_CLIENT]
    stands = [
        dimension.workload
        for answer in report.answers
        if answer.platform == platform.platform
        for dimension in answer.dimensions
        if dimension.dimension == "applications"
    ]
    return [
        f"{platform.mean or 0:,.0f}/s",
        f"{means.get(CLIENT_BUSY) or 0:.0f} %",
        f"{(means.get(CLIENT_COST) or 0) / 1e3:.1f} µs",
        "; ".join(said) or "nothing",
        ", ".join(stands) or "the baseline",
    ]


if __name__ == "__main__":
    main()
