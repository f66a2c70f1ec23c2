"""Builds the `Report` of a campaign's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from tare.analysis import STEAL_LIMIT, Interval, MetricResult, NoiseFloor, analyse
from tare.analysis.answers import answers
from tare.analysis.comparisons.multiplicity import corrected
from tare.analysis.curves import curves_of
from tare.analysis.effects import Effect
from tare.analysis.quality import contamination
from tare.analysis.quality.disk import flag_disk
from tare.analysis.quality.fairness import Difference, differences, unlike_mtus
from tare.analysis.quality.findings import Finding
from tare.analysis.results import Tails
from tare.estimates.dependence import dependence
from tare.estimates.grid import BlockRatios
from tare.model import DAEMONS_MEMORY, NOT_SEEN, SHOWN_COSTS, Arm, Family, Mode, Status, TrialKey
from tare.report.campaign.answer_views import answers_of, bound_report, settling_of
from tare.report.campaign.curve_views import curve_reports
from tare.report.campaign.dependence_view import dependence_report
from tare.report.campaign.ranking_views import rankings_of
from tare.report.model import (
    SCHEMA,
    ClientFacts,
    Contamination,
    DifferenceReport,
    EffectReport,
    EventReport,
    FailureReport,
    FindingReport,
    LeftOutReport,
    MultiplicityReport,
    NoiseFloorReport,
    PlatformFacts,
    PlatformReport,
    Report,
    ResultReport,
    SegmentReport,
    SettingReport,
    UnmarkedReport,
)
from tare.report.section import Source, built
from tare.report.sentences.answer_words import settling_text
from tare.report.sentences.fairness_words import UNFAIR, fact_text, mtu_remark
from tare.report.sentences.notes import DISTURBANCES, NO_FLOOR, FindingContext, sentence
from tare.report.sentences.verdict_words import Subject, verdict_text
from tare.store import CampaignRecord, Store, WorkloadRecord, read_store

#: In what the reasons of instances that failed alike differ: addresses, and ports (`InstanceLauncher`'s).
_OF_AN_INSTANCE = r"\b\d{1,3}(\.\d{1,3}){3}\b|\b2[012]\d{3}\b"


def build(path: Path, options: Mapping[str, Any] | None = None) -> Report:
    """Read and analyse one campaign's file, also while it is being written. Raises `StoreError`.

    ``options``: see `tare.report.section.Source`.
    """
    with read_store(path) as store, store.snapshot():
        return report_on(store, store.samples(), options)


def report_on(
    store: Store,
    samples: pl.DataFrame,
    options: Mapping[str, Any] | None = None,
    *,
    with_sections: bool = True,
) -> Report:
    """Return the report of an open store, whose samples the caller reads. ``with_sections``: with all `sections`."""
    record, trials, telemetry = store.record, store.trials(), store.telemetry()
    marked = contamination.of_campaign(record, trials, telemetry)
    shown = {
        (workload.name, metric.name)
        for workload in record.workloads
        for at, metric in enumerate(workload.metrics)
        if at == 0 or metric.name in SHOWN_COSTS
    }
    alone = analyse(record, samples, trials, marked, store.slices())
    analysed, together = corrected(flag_disk(record, alone, trials, telemetry), shown)
    surfaces, segments = list(store.surfaces()), store.segments()
    if trials.is_empty() and not store.schedule() and (surfaces or any(True for _ in store.footprints())):
        analysed = []  # no trial was planned: leave out a table of "no data" alone
    results = _with_unseen(results_of(record, analysed), store, trials)
    facts, known = _facts(record, trials, samples), answers(record, analysed, trials)
    return Report(
        schema_=SCHEMA,
        id=record.id,
        file=store.name,
        created=record.created,
        tare_version=record.tare_version,
        seed=record.seed,
        profile=record.profile,
        status=store.status,
        baseline=record.baseline,
        blocks_done=_blocks_done(store, trials),
        blocks_planned=record.blocks,
        time_budget_s=record.time_budget_s,
        resources=record.resources.model_dump(),
        client=None if record.client is None else ClientFacts.model_validate(record.client.model_dump()),
        host=record.host,
        image=record.image,
        agent_hash=record.agent_hash,
        fairness=record.fairness,
        differences=[_difference(difference) for difference in differences(record)],
        design=record.design,
        scale=record.scale,
        platforms=facts,
        plugins=_plugins(record),
        workload_params={workload.name: workload.params for workload in record.workloads},
        answers=answers_of(known, results, facts, surfaces, record.baseline, store.name) if results else [],
        settling=settling_of(known.settling, store.name) if results else None,
        settling_text=settling_text(known.settling) if results else "",
        results=results,
        rankings=rankings_of(record, results),
        curves=curve_reports(curves_of(record, samples)),
        failures=_failures(trials),
        left_out=[
            LeftOutReport(**omitted.model_dump(), asked=omitted.platform in record.asked) for omitted in record.left_out
        ],
        contaminated=_contamination(trials, marked, telemetry.host.height),
        events=[EventReport(at=event.at, level=event.level, text=event.text) for event in store.events()],
        tuning=_tuning(record),
        active_s=sum(segment.seconds for segment in segments),
        segments=[SegmentReport.model_validate(asdict(segment)) for segment in segments],
        unknown_fields=list(store.unknown_fields),
        multiplicity=MultiplicityReport.model_validate(asdict(together)),
        dependence=dependence_report(dependence(_pairs(analysed))),
        **(built(Source(store, samples, trials, results, analysed, options or {})) if with_sections else {}),
    )


def _with_unseen(results: Sequence[ResultReport], store: Store, trials: pl.DataFrame) -> list[ResultReport]:
    """The results, those of lives with the reasons why figures are missing: of the last trial of each platform."""
    reasons: dict[tuple[str, str], dict[str, str]] = {}
    lives = {result.workload for result in results if result.family is Family.LIFE}
    ended = trials.filter((pl.col("status") == Status.OK) & pl.col("workload").cast(pl.String).is_in(list(lives)))
    for block, workload, platform, replica in ended.select("block", "workload", "platform", "replica").iter_rows():
        key = TrialKey(block, str(workload), Arm(str(platform), replica))
        output = store.outputs(key).get(NOT_SEEN)
        lines = output.data.decode(errors="replace").splitlines() if output is not None else []
        reasons[key.workload, key.arm.platform] = dict(line.split(": ", 1) for line in lines if ": " in line)

    def with_reasons(result: ResultReport) -> ResultReport:
        platforms = []
        for platform in result.platforms:
            why = reasons.get((result.workload, platform.platform), {}).get(result.metric)
            platforms.append(platform if platform.mean is not None else platform.model_copy(update={"unseen": why}))
        return result.model_copy(update={"platforms": platforms})

    return [with_reasons(result) if result.workload in lives else result for result in results]


def timed(store: Store, samples: pl.DataFrame) -> Report:
    """Return the report without its sections, which can take longer than everything else."""
    return report_on(store, samples, with_sections=False)


def _tuning(record: CampaignRecord) -> list[SettingReport] | None:
    if record.tuning is None:
        return None
    return [SettingReport.model_validate(setting.model_dump()) for setting in record.tuning]


def _pairs(results: Sequence[MetricResult]) -> list[BlockRatios]:
    return [platform.pairs for result in results for platform in result.platforms if platform.pairs is not None]


def _difference(difference: Difference) -> DifferenceReport:
    return DifferenceReport(
        platform=difference.platform,
        fact=difference.fact,
        value=fact_text(difference.value),
        baseline=fact_text(difference.baseline),
        unfair=UNFAIR[difference.fact] if difference.unfair else None,
    )


def _facts(record: CampaignRecord, trials: pl.DataFrame, samples: pl.DataFrame) -> list[PlatformFacts]:
    read = trials.filter(pl.col("daemon_cpu_ns").is_not_null()).group_by("platform")
    sums = read.agg(share=pl.col("daemon_cpu_ns").sum() / pl.col("wall_ns").sum())
    shares = {str(name): float(share) for name, share in sums.iter_rows()}
    of_daemons = samples.filter(pl.col("metric") == DAEMONS_MEMORY).group_by("platform")
    sizes = {str(name): float(mib) for name, mib in of_daemons.agg(pl.col("value").median()).iter_rows()}
    return [
        PlatformFacts.model_validate(
            platform.model_dump(exclude={"package"})
            | {"daemons_share": shares.get(platform.name), "daemons_mib": sizes.get(platform.name)}
        )
        for platform in record.platforms
    ]


def _plugins(record: CampaignRecord) -> dict[str, list[str]]:
    packages: dict[str, list[str]] = {}
    platforms = ((platform.name, platform.package) for platform in record.platforms)
    workloads = ((workload.name, workload.package) for workload in record.workloads)
    for name, package in (*platforms, *workloads):
        if package:
            packages.setdefault(package, []).append(name)
    return packages


def platform_names(record: CampaignRecord) -> list[str]:
    """Names of all platforms, the baseline first, in the order of tables."""
    return [record.baseline, *(platform.name for platform in record.platforms if platform.name != record.baseline)]


def results_of(record: CampaignRecord, results: list[MetricResult]) -> list[ResultReport]:
    """Results of the analysis as report models, with titles from the record."""
    workloads = {workload.name: workload for workload in record.workloads}
    remarks = _remarks(record)
    reports = [_result(workloads[result.workload], result, remarks) for result in results]
    for workload in record.workloads:
        if workload.mode is Mode.START:
            reports = _with_headlines(workload, reports)
    return reports


def _remarks(record: CampaignRecord) -> dict[tuple[str, str], str]:
    """Return what figures are to be read with, by the platform and the family: its own words, and an MTU of its own."""
    remarks = {(entry.name, family): text for entry in record.platforms for family, text in entry.remarks.items()}
    for platform, (mtu, baseline_mtu) in unlike_mtus(record).items():
        for family in (Family.NETWORK, Family.APPLICATION):
            texts = [remarks.get((platform, family)), mtu_remark(mtu, baseline_mtu, record.baseline)]
            remarks[platform, family] = "; ".join(filter(None, texts))
    return remarks


def _with_headlines(workload: WorkloadRecord, results: list[ResultReport]) -> list[ResultReport]:
    """The same, where a platform that cannot have a start's first mark has the first that it has as its headline."""
    order = [metric.name for metric in workload.metrics]
    of_workload = sorted(
        (r for r in results if r.workload == workload.name), key=lambda result: order.index(result.metric)
    )
    instead: dict[str, str] = {}
    without: dict[str, bool] = {}
    for result in of_workload:
        for platform in result.platforms:
            lacks_first = without.setdefault(platform.platform, platform.mean is None and result.headline)
            if lacks_first and platform.mean is not None:
                instead.setdefault(platform.platform, result.metric)
    return [_with_headline(result, instead) if result.workload == workload.name else result for result in results]


def _with_headline(result: ResultReport, instead: Mapping[str, str]) -> ResultReport:
    if not result.headline:
        return result.model_copy(update={"headline": result.metric in instead.values()})
    platforms = [
        platform.model_copy(update={"instead": instead.get(platform.platform)}) for platform in result.platforms
    ]
    return result.model_copy(update={"platforms": platforms})


def _result(workload: WorkloadRecord, result: MetricResult, remarks: Mapping[tuple[str, str], str]) -> ResultReport:
    titles = {metric.name: metric.title for metric in workload.metrics}
    headlines = {workload.metrics[0].name, *(metric.name for metric in workload.metrics if metric.headline)}
    subject = Subject(result.metric, result.unit, result.direction, result.margin, workload.family)
    return ResultReport(
        workload=workload.name,
        workload_title=workload.title,
        family=workload.family,
        mode=workload.mode,
        metric=result.metric,
        metric_title=titles[result.metric],
        headline=result.metric in headlines,
        unit=result.unit,
        direction=result.direction,
        margin_percent=100 * result.margin,
        noise_floor=_floor(result.noise_floor) if result.noise_floor else None,
        platforms=[
            _platform(
                FindingContext(subject, platform, result.noise_floor),
                remarks.get((platform.platform, workload.family)),
            )
            for platform in result.platforms
        ],
    )


def _floor(floor: NoiseFloor) -> NoiseFloorReport:
    point, low, high = _percents(floor.interval)
    return NoiseFloorReport(
        point_percent=point,
        low_percent=low,
        high_percent=high,
        half_width_percent=100 * floor.interval.half_width if floor.interval else None,
        n_blocks=floor.n_blocks,
        excludes_zero=floor.excludes_zero,
        detectable_percent=None if floor.detectable is None else 100 * floor.detectable,
        reason=None if floor.reason is None else NO_FLOOR[floor.reason],
    )


def _platform(context: FindingContext, remark: str | None) -> PlatformReport:
    result = context.platform
    op, op_low, op_high = _percents(result.overhead)
    totals, totals_low, totals_high = _percents(result.totals)
    tails = result.tails or Tails(None, None)
    added, lone = result.amount, result.lone
    added_range = added.interval if added else None
    variability = result.variability_overhead
    cautions = [_finding(note, context) for note in result.notes]
    return PlatformReport(
        platform=result.platform,
        n_blocks=result.n_blocks,
        n_left_out=result.n_left_out,
        n_ok=result.counts.ok,
        n_failed=result.counts.failed,
        n_unsupported=result.counts.unsupported,
        n_contaminated=result.counts.contaminated,
        mean=result.described.mean,
        sd=result.described.sd,
        median=result.described.median,
        n_values=result.described.n,
        ratio=result.ratio.point if result.ratio else lone.ratio if lone else None,
        ratio_low=result.ratio.low if result.ratio else None,
        ratio_high=result.ratio.high if result.ratio else None,
        ratio_bootstrap_low=result.bootstrap.low if result.bootstrap else None,
        ratio_bootstrap_high=result.bootstrap.high if result.bootstrap else None,
        effect=_effect(result.effect),
        op_percent=100 * lone.overhead if lone else op,
        op_low_percent=op_low,
        op_high_percent=op_high,
        totals_percent=totals,
        totals_low_percent=totals_low,
        totals_high_percent=totals_high,
        p95_percent=None if tails.p95 is None else 100 * tails.p95,
        p99_percent=None if tails.p99 is None else 100 * tails.p99,
        amount=added.point if added else None,
        amount_low=added_range.low if added_range else None,
        amount_high=added_range.high if added_range else None,
        amount_unit=added.unit if added else None,
        variability_overhead_percent=None if variability is None else 100 * variability,
        variability_low_percent=None if result.variability is None else 100 * result.variability.low,
        variability_high_percent=None if result.variability is None else 100 * result.variability.high,
        verdict=result.verdict.kind,
        verdict_text=verdict_text(result.verdict, context.subject, result.platform, result.effect),
        findings=[_finding(finding, context) for finding in result.findings],
        certain=result.verdict.certain,
        verdict_reason=result.verdict.reason,
        cautions=cautions,
        notes=[*(caution.text for caution in cautions), *([remark] if remark else [])],
        remark=remark,
        contaminated_by=dict(result.counts.reasons),
        unmarked=_unmarked(context),
        p_adjusted=result.p,
        survives_holm=result.survives_holm,
    )


def _effect(effect: Effect | None) -> EffectReport | None:
    if effect is None:
        return None
    known = effect.level is not None
    return EffectReport(
        times=effect.times.point,
        low=effect.times.low if known else None,
        high=effect.times.high if known else None,
        level=effect.level,
        whole_blocks=effect.whole_blocks,
        value=effect.value,
        bound=None if effect.bound is None else bound_report(effect.bound),
    )


def _finding(finding: Finding, context: FindingContext) -> FindingReport:
    return FindingReport(kind=finding.kind, numbers=dict(finding.numbers), text=sentence(finding, context))


def _unmarked(context: FindingContext) -> UnmarkedReport | None:
    clean = context.platform.unmarked
    if clean is None:
        return None
    op, op_low, op_high = _percents(clean.overhead)
    return UnmarkedReport(
        n_trials=clean.n_trials,
        n_baseline=clean.n_baseline,
        n_blocks=clean.n_blocks,
        op_percent=op,
        op_low_percent=op_low,
        op_high_percent=op_high,
        verdict=clean.verdict.kind,
        verdict_text=verdict_text(clean.verdict, context.subject, context.platform.platform, clean.effect),
    )


def _percents(interval: Interval | None) -> tuple[float | None, float | None, float | None]:
    if interval is None:
        return None, None, None
    return 100 * interval.point, 100 * interval.low, 100 * interval.high


def _blocks_done(store: Store, trials: pl.DataFrame) -> int:
    """The number of blocks of which every planned trial is in the file."""
    missing = {key.block for key in set(store.schedule()) - store.done()}
    return len(set(trials["block"].unique().to_list()) - missing)


def _failures(trials: pl.DataFrame) -> list[FailureReport]:
    groups = (
        trials.filter(pl.col("status") != Status.OK)
        .with_columns(pl.col("workload", "platform").cast(pl.String))
        .group_by(
            "workload", "platform", "status", pl.col("reason").str.replace_all(_OF_AN_INSTANCE, "").alias("alike"),
            maintain_order=True,
        )
        .agg(
            pl.col("reason").first(), pl.len().alias("n_trials"), pl.col("block").unique().sort().alias("blocks"),
        )
        .drop("alike")
    )  # fmt: skip
    return [FailureReport.model_validate(row) for row in groups.iter_rows(named=True)]


def _contamination(trials: pl.DataFrame, marked: pl.DataFrame, n_ticks: int) -> Contamination:
    numbers = dict(marked.group_by("reason").len().iter_rows())
    reasons = {reason: int(numbers[reason]) for reason in contamination.LIMITS if reason in numbers}
    return Contamination(
        steal_threshold=STEAL_LIMIT,
        n_trials=marked.select(contamination.KEY).n_unique(),
        n_all_trials=trials.height,
        reasons=reasons,
        limits=dict(contamination.LIMITS),
        told=[f"{DISTURBANCES[reason]}: {number}" for reason, number in reasons.items()],
        n_ticks=n_ticks,
    )
