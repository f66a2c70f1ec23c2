"""The answers of a campaign as report models: the analysis' codes, with the figures that they name and their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.analysis.answers import Answer, Answers, Settling, Standing
from tare.analysis.bounds import Bound
from tare.footprint_model import Call, Surface
from tare.report.model import (
    AnswerReport,
    BoundReport,
    DimensionReport,
    PlatformFacts,
    PlatformReport,
    ResultReport,
    SettlingReport,
)
from tare.report.sentences.answer_words import Exposed, StandingFigure, clause, command, figure, sentences
from tare.report.sentences.scale import overheads


def answers_of(
    answers: Answers,
    results: Sequence[ResultReport],
    facts: Sequence[PlatformFacts],
    surfaces: Sequence[Surface],
    baseline: str,
    file: str,
) -> list[AnswerReport]:
    """The answers with their words. ``results``: those that the answers were made from; ``file``: the campaign's."""
    by_name = {(result.workload, result.metric): result for result in results}
    by_platform = {platform.name: platform for platform in facts}
    return [
        _answer(
            answer,
            by_name,
            exposed_of(surfaces, answer.platform, baseline),
            by_platform[answer.platform],
            _failed(results, answer.platform),
            file,
        )
        for answer in answers.platforms
    ]


def settling_of(settling: Settling | None, file: str) -> SettlingReport | None:
    """Return what would answer what is open, with its command; None where nothing is open."""
    if settling is None:
        return None
    return SettlingReport(
        workloads=list(settling.workloads),
        blocks=settling.blocks,
        seconds=settling.seconds,
        command=command(settling, file),
        beyond=list(settling.beyond),
        beyond_seconds=settling.beyond_seconds,
    )


def shares_daemon(facts: PlatformFacts) -> bool:
    """Return True if its instances share a daemon: by the platform, or in older campaigns by a daemon's CPU time."""
    return facts.daemons_share is not None if facts.daemon is None else bool(facts.daemon)


def exposed_of(surfaces: Sequence[Surface], platform: str, baseline: str) -> Exposed | None:
    """Return how many calls a platform's tenant may make, as it was read last; None where it was not read."""
    last = {surface.platform: surface for surface in surfaces}
    surface, base = last.get(platform), last.get(baseline)
    if surface is None or surface.calls is None:
        return None
    whole = surface.of if base is None or base.calls is None else _let_through(base)
    return Exposed(_let_through(surface), whole, least=bool(surface.unread))


def _let_through(surface: Surface) -> int:
    return surface.counts[Call.ALLOWED] + surface.counts[Call.CONDITIONAL]


def _answer(
    answer: Answer,
    results: Mapping[tuple[str, str], ResultReport],
    exposed: Exposed | None,
    facts: PlatformFacts,
    failed: Mapping[str, int],
    file: str,
) -> AnswerReport:
    shown = [_shown(standing, results, answer.platform) for standing in answer.standings]
    return AnswerReport(
        platform=answer.platform,
        sentences=sentences(shown, exposed, failed),
        dimensions=[_dimension(comparison) for comparison in shown],
        daemon=shares_daemon(facts),
        needs_root=facts.needs_root,
        calls=None if exposed is None else exposed.calls,
        baseline_calls=None if exposed is None else exposed.baseline,
        settling=settling_of(answer.settling, file),
    )


def _failed(results: Sequence[ResultReport], platform: str) -> dict[str, int]:
    """Workloads of which every trial of the platform failed, and how many there were."""
    by_workload = {
        result.workload: figures for result in results for figures in result.platforms if figures.platform == platform
    }
    return {name: figures.n_failed for name, figures in by_workload.items() if figures.n_failed and not figures.n_ok}


def _shown(standing: Standing, results: Mapping[tuple[str, str], ResultReport], platform: str) -> StandingFigure:
    result = results[standing.workload, standing.metric]
    return StandingFigure(standing, result, _of(result, platform), result.platforms[0])


def _of(result: ResultReport, platform: str) -> PlatformReport:
    return next(figures for figures in result.platforms if figures.platform == platform)


def _dimension(shown: StandingFigure) -> DimensionReport:
    standing, times = shown.standing, shown.figure.times
    effect = shown.platform.effect
    return DimensionReport(
        dimension=standing.dimension,
        state=standing.state,
        workload=standing.workload,
        metric=standing.metric,
        direction=shown.result.direction,
        n_figures=standing.n_figures,
        felt=standing.felt,
        op_percent=None if times is None else 100 * overheads(times, shown.result.direction).point,
        times=None if times is None else times.point,
        times_low=None if times is None else times.low,
        times_high=None if times is None else times.high,
        value=shown.platform.mean if effect is None else effect.value,
        unit=shown.result.unit,
        bound=None if standing.bound is None else bound_report(standing.bound),
        seconds=standing.seconds,
        survives_holm=shown.platform.survives_holm,
        figure=figure(shown),
        text=clause(shown),
    )


def bound_report(bound: Bound) -> BoundReport:
    """The report's form of a bound."""
    low, high = bound.added or (None, None)
    return BoundReport(kind=bound.kind, low=bound.low, high=bound.high, amount_low=low, amount_high=high)
