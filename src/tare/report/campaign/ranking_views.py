"""Rank the platforms for each of a user's own commands, by the headline figures of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tare.report.model import PlatformReport, ResultReport
from tare.report.model.ranking_models import RankingReport, RankReport
from tare.report.sentences.ranking_words import ranking
from tare.store import CampaignRecord


def rankings_of(record: CampaignRecord, results: Sequence[ResultReport]) -> list[RankingReport]:
    """One entry a command, in the record's order; none of other workloads."""
    by_workload = {(result.workload, result.metric): result for result in results}
    headlines = [(entry.name, entry.metrics[0].name) for entry in record.workloads if entry.program is not None]
    return [_ranking(by_workload[key], record.baseline) for key in headlines if key in by_workload]


def _ranking(result: ResultReport, baseline: str) -> RankingReport:
    others = [platform for platform in result.platforms if platform.platform != baseline]
    ranks = sorted(map(_rank, others), key=lambda rank: math.inf if rank.times is None else rank.times)
    text = ranking(result.workload, baseline, ranks)
    return RankingReport(workload=result.workload, baseline=baseline, ranks=ranks, text=text)


def _rank(platform: PlatformReport) -> RankReport:
    """By the effect that the tables show, so that both agree. A command's headline is a time: worse is longer."""
    effect = platform.effect
    return RankReport(
        platform=platform.platform,
        times=None if effect is None else effect.times,
        low=None if effect is None else effect.low,
        high=None if effect is None else effect.high,
        level=None if effect is None else effect.level,
        n_ok=platform.n_ok,
    )
