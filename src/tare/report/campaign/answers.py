"""The answers of a campaign as report models: the analysis' codes, with the figures that they name and their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.analysis.answers import Answer, Standing
from tare.analysis.verdicts import Reason
from tare.estimates.overhead import ratio_of
from tare.footprint_model import Call
from tare.model import Direction
from tare.report.model import (
    AnswerReport,
    DimensionReport,
    PlatformFacts,
    PlatformReport,
    ResultReport,
    SettlingReport,
)
from tare.report.model.surface import SurfacesReport
from tare.report.sentences.answers import Exposed, Shown, clause, command, figure, sentences


def answers_of(
    answers: Sequence[Answer],
    results: Sequence[ResultReport],
    facts: Sequence[PlatformFacts],
    surfaces: SurfacesReport | None,
    baseline: str,
) -> list[AnswerReport]:
    """The answers with their words. ``results``: those that the answers were made from."""
    by_name = {(result.workload, result.metric): result for result in results}
    by_platform = {platform.name: platform for platform in facts}
    return [
        _answer(
            answer,
            by_name,
            exposed_of(surfaces, answer.platform, baseline),
            by_platform[answer.platform],
            _failed(results, answer.platform),
        )
        for answer in answers
    ]


def shares_daemon(facts: PlatformFacts) -> bool:
    """Whether its instances share a daemon: as the platform says; in older campaigns, whether one had CPU time."""
    return facts.daemons_share is not None if facts.daemon is None else bool(facts.daemon)


def exposed_of(surfaces: SurfacesReport | None, platform: str, baseline: str) -> Exposed | None:
    """How many calls a platform's tenant may make; None where it was not read."""
    read = {surface.platform: surface for surface in surfaces.surfaces} if surfaces is not None else {}
    platform_surface, base = read.get(platform), read.get(baseline)
    if platform_surface is None or platform_surface.counts is None:
        return None
    runs = (Call.ALLOWED, Call.CONDITIONAL)
    calls = sum(platform_surface.counts.get(call, 0) for call in runs)
    whole = (
        platform_surface.of if base is None or base.counts is None else sum(base.counts.get(call, 0) for call in runs)
    )
    return Exposed(calls, whole, least=bool(platform_surface.unread))


def _answer(
    answer: Answer,
    results: Mapping[tuple[str, str], ResultReport],
    exposed: Exposed | None,
    facts: PlatformFacts,
    failed: Mapping[str, int],
) -> AnswerReport:
    shown = [_shown(standing, results, answer.platform) for standing in answer.standings]
    settling = answer.settling
    return AnswerReport(
        platform=answer.platform,
        sentences=sentences(answer, shown, exposed, failed),
        dimensions=[_dimension(comparison) for comparison in shown],
        daemon=shares_daemon(facts),
        needs_root=facts.needs_root,
        calls=None if exposed is None else exposed.calls,
        baseline_calls=None if exposed is None else exposed.baseline,
        settling=None
        if settling is None
        else SettlingReport(
            workloads=list(settling.workloads),
            blocks=settling.blocks,
            seconds=settling.seconds,
            command=command(settling, answer.platform),
            beyond=list(settling.beyond),
            beyond_seconds=settling.beyond_seconds,
        ),
    )


def _failed(results: Sequence[ResultReport], platform: str) -> dict[str, int]:
    """Workloads of which every trial of the platform failed, and how many there were."""
    by_workload = {
        result.workload: figures for result in results for figures in result.platforms if figures.platform == platform
    }
    return {name: figures.n_failed for name, figures in by_workload.items() if figures.n_failed and not figures.n_ok}


def _shown(standing: Standing, results: Mapping[tuple[str, str], ResultReport], platform: str) -> Shown:
    result = results[standing.workload, standing.metric]
    return Shown(standing, result, as_judged(_of(result, platform), result.direction), result.platforms[0])


def as_judged(platform: PlatformReport, direction: Direction) -> PlatformReport:
    """The platform with the figure that its verdict is of: where only whole blocks differ, that of whole blocks."""
    ends = platform.totals_low_percent, platform.totals_high_percent
    if platform.verdict_reason is not Reason.WHOLE_BLOCKS or platform.totals_percent is None:
        return platform
    ratios = [None if op is None else ratio_of(op / 100, direction) for op in (platform.totals_percent, *ends)]
    point, *between = ratios
    low, high = between if direction is Direction.LOWER else reversed(between)
    totals = {"op_percent": platform.totals_percent, "op_low_percent": ends[0], "op_high_percent": ends[1]}
    return platform.model_copy(update={**totals, "ratio": point, "ratio_low": low, "ratio_high": high})


def _of(result: ResultReport, platform: str) -> PlatformReport:
    return next(figures for figures in result.platforms if figures.platform == platform)


def _dimension(shown: Shown) -> DimensionReport:
    standing = shown.standing
    return DimensionReport(
        dimension=standing.dimension,
        state=standing.state,
        workload=standing.workload,
        metric=standing.metric,
        n_figures=standing.n_figures,
        felt=standing.felt,
        op_percent=shown.platform.op_percent,
        value=shown.platform.mean,
        unit=shown.result.unit,
        figure=figure(shown),
        text=clause(shown),
    )
