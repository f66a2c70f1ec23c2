"""Analysis of a campaign: from samples and the record's facts to figures, without side effects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tare.analysis.amounts import UnitScale, amount, scale
from tare.analysis.contrasting import contrasts_of, looks_of
from tare.analysis.counts import CountsByArm, count_trials, trials_of
from tare.analysis.effects import effect
from tare.analysis.evidence import Evidence, paired, side_by_side
from tare.analysis.grids import grid_of, metric_parts
from tare.analysis.hidden import Trials
from tare.analysis.quality import contamination
from tare.analysis.quality.caveats import caveats
from tare.analysis.quality.client_limit import flag_client
from tare.analysis.quality.clocks import flag_clocks
from tare.analysis.quality.drift import drift
from tare.analysis.quality.fairness import refusals
from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.quality.page_shares import flag_pages
from tare.analysis.quality.slow_rounds import tails
from tare.analysis.quality.spread import sd_ratio_bonett, variability
from tare.analysis.quality.unmarked import with_unmarked
from tare.analysis.refusals import NoAnswer
from tare.analysis.results import Description, FloorReason, Lone, MetricResult, NoiseFloor, PlatformResult, TrialCounts
from tare.analysis.rule import WIDE, closed_by, decide, intervals_of, noise_floor, settle
from tare.analysis.verdicts import EQUAL, Closed, Enough, Question, Reason, Verdict, VerdictKind
from tare.estimates.contrasts import Contrast
from tare.estimates.grid import Grid, reference, weighted
from tare.estimates.intervals import Interval, bca_interval, smallest_effect
from tare.estimates.looks import Looks
from tare.estimates.moderated import FigureRow
from tare.estimates.overhead import overhead, ratio, variability_overhead
from tare.estimates.widths import WidthRow, blocks_needed
from tare.model import CPU_COST, Design, Mode
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord, workload_seconds

#: A log ratio beyond any real difference; `math.expm1` overflows beyond 709.
_WORLDS_APART = 50.0


@dataclass(frozen=True, slots=True)
class _Context:
    """Values that all platforms of one metric share."""

    grid: Grid
    contrasts: Mapping[FigureRow, Contrast]  # Of this metric.
    looks: Mapping[FigureRow, Looks]  # Of all metrics.
    workload: str
    question: Question
    scale: UnitScale  # Of the amount that a platform adds.
    design: Design
    baseline: tuple[int, ...]  # Positions of its arms.
    n_blocks: int  # Of the campaign, with any trial of this workload.
    twin: Evidence | None  # The baseline's second arm against its first.
    floor: NoiseFloor | None
    closed: Closed | None  # The reason why the metric has no verdicts.
    base: Description
    unlike: Mapping[str, tuple[str, ...]]  # Facts that make a comparison unfair, by platform.
    block_s: float | None  # Seconds of a block of the workload.
    counts: TrialCounts  # Of the baseline.


def analyse(
    record: CampaignRecord,
    samples: pl.DataFrame,
    trials: pl.DataFrame,
    marked: pl.DataFrame | None = None,
    slices: pl.DataFrame | None = None,
) -> list[MetricResult]:
    """Analyse every metric of every workload in the record, in its order.

    ``samples``, ``trials`` and ``slices`` are the frames of `tare.store.Store`. ``marked``: the contaminated trials; by
    default, those that the trials' own rows show. Without ``slices``, all rounds of a block have the same weight in its
    total. A platform or metric without usable samples gets a verdict with the reason.
    """
    if slices is not None:
        samples = weighted(samples, slices)
    if marked is None:
        marked = contamination.marks(trials, None, record.resources.cpus)
    counts = count_trials(trials, marked)
    blocks = dict(trials.group_by("workload").agg(pl.col("block").n_unique()).iter_rows())
    seconds = with_starts(record, workload_seconds(trials))
    nothing = samples.clear()
    parts, clean = (metric_parts(frame) for frame in (samples, contamination.without(samples, marked)))
    whole = {key: grid_of(record, *of, parts.get(key, nothing)) for key, of in _metrics(record).items()}
    without = {
        key: grid_of(record, *of, clean.get(key, nothing))
        for key, of in _metrics(record).items()
        if clean.get(key, nothing).height < parts.get(key, nothing).height
    }
    contrasts = {key: contrasts_of(record, *key, grid) for key, grid in whole.items()}
    clean_contrasts = {key: contrasts_of(record, *key, grid) for key, grid in without.items()}
    looks, clean_looks = looks_of(record, contrasts), looks_of(record, contrasts | clean_contrasts) if without else {}
    results = []
    for workload in record.workloads:
        workload_results = []
        for metric in workload.metrics:
            key = workload.name, metric.name
            shared = _Shared(record, workload, metric, counts, blocks.get(workload.name, 0), seconds.get(workload.name))
            result = _metric(shared, whole[key], contrasts[key], looks)
            if key in without:
                result = with_unmarked(result, _metric(shared, without[key], clean_contrasts[key], clean_looks))
            workload_results.append(result)
        flagged = flag_client(record, workload, _flag_disagreement(flag_pages(workload_results)))
        results += flag_clocks(workload.name, flagged, trials)
    return results


def with_starts(record: CampaignRecord, seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of a block of each workload alone, with the starts that every block includes."""
    starts = {workload.name for workload in record.workloads if workload.mode is Mode.START}
    started = sum(seconds.get(name, 0.0) for name in starts)
    return {name: took if name in starts else took + started for name, took in seconds.items()}


def _metrics(record: CampaignRecord) -> dict[tuple[str, str], tuple[WorkloadRecord, MetricRecord]]:
    pairs = ((workload, metric) for workload in record.workloads for metric in workload.metrics)
    return {(workload.name, metric.name): (workload, metric) for workload, metric in pairs}


@dataclass(frozen=True, slots=True)
class _Shared:
    """Input for the analysis of a metric besides its samples."""

    record: CampaignRecord
    workload: WorkloadRecord
    metric: MetricRecord
    counts: CountsByArm
    n_blocks: int  # With any trial of the workload.
    block_s: float | None  # Seconds of a block of the workload.


def _metric(
    shared: _Shared, grid: Grid, contrasts: Mapping[FigureRow, Contrast], looks: Mapping[FigureRow, Looks]
) -> MetricResult:
    record, workload, metric = shared.record, shared.workload, shared.metric
    question = Question(metric.name, metric.direction, workload.margin)
    baseline = tuple(grid.of_platform(record.baseline))
    twin = _twin(shared, grid, baseline, contrasts, looks)
    described = _describe(grid, baseline)
    nothing = TrialCounts()
    baseline_counts = shared.counts.get((workload.name, record.baseline), nothing)
    context = _Context(
        grid=grid,
        contrasts=contrasts,
        looks=looks,
        scale=scale(metric.unit, workload.family, workload.work_unit),
        workload=workload.name,
        question=question,
        design=record.design,
        baseline=baseline,
        n_blocks=shared.n_blocks,
        twin=twin,
        floor=_noise_floor(question, baseline, twin),
        closed=None if twin is None else closed_by(question, twin),
        base=described,
        unlike=refusals(record),
        block_s=shared.block_s,
        counts=baseline_counts,
    )
    compared = dict.fromkeys(arm.platform for arm in grid.arms if arm.platform != record.baseline)
    platforms = [_baseline(context, record.baseline, baseline_counts)]
    platforms += [_platform(context, name, shared.counts.get((workload.name, name), nothing)) for name in compared]
    return MetricResult(
        workload.name, metric.name, metric.unit, metric.direction, workload.margin, context.floor, tuple(platforms)
    )


def _baseline(context: _Context, name: str, counts: TrialCounts) -> PlatformResult:
    n_blocks = len(set().union(*(_blocks_with(context.grid, arm) for arm in context.baseline)))
    verdict = (
        Verdict(VerdictKind.BASELINE, Reason.BASELINE) if n_blocks else Verdict(VerdictKind.NO_DATA, Reason.NO_DATA)
    )
    return PlatformResult(
        platform=name,
        n_blocks=n_blocks,
        n_left_out=context.n_blocks - n_blocks,
        counts=counts,
        described=context.base,
        verdict=verdict,
        notes=tuple(_contamination(counts)),
    )


def _platform(context: _Context, name: str, counts: TrialCounts) -> PlatformResult:
    grid = context.grid
    (arm,) = grid.of_platform(name)[:1]
    described = _describe(grid, [arm])
    design = context.design
    base = reference(grid, grid.arms[context.baseline[0]].platform, design)
    marked = tuple(_contamination(counts))
    empty = PlatformResult(name, 0, context.n_blocks, counts, described, notes=marked)
    refusal = _refusal(context, name, arm, counts)
    if refusal is not None:
        added = None if name in context.unlike else amount(grid, arm, base, design, context.scale)
        return replace(empty, verdict=refusal, amount=added)
    trials = trials_of(counts, context.counts)
    seen = _evidence(context, name, arm, base, trials)
    count = seen.n_blocks
    verdict = settle(context.question, seen, context.twin)
    shown = effect(context.question, seen, verdict, context.base.mean, context.scale)
    result = replace(
        empty,
        n_blocks=count,
        n_left_out=context.n_blocks - count,
        verdict=verdict,
        effect=shown,
        amount=shown.amount if shown else None,
    )
    if seen.looks is None:
        return replace(result, lone=_lone(context, seen))
    findings = caveats(grid, arm, base, context.question, seen, trials)
    notes = [finding for finding in findings if finding.kind is not FindingKind.UNSEEN]
    if verdict.kind is VerdictKind.INCONCLUSIVE:
        verdict = replace(verdict, enough=_enough(context, seen))
    drifts = drift(seen)
    if drifts is not None and drifts.closes(context.question) is None:
        drift_note = [Finding(FindingKind.DRIFT, {"correlation": drifts.correlation})]
    else:
        drift_note = []
    typical, direction = seen.looks.typical.interval(WIDE), context.question.direction
    totals = (seen.looks.totals or seen.looks.typical).interval(WIDE)
    bootstrap = None if seen.pairs is None else bca_interval(seen.pairs.logs, WIDE)
    return replace(
        result,
        ratio=ratio(typical),
        bootstrap=ratio(bootstrap) if bootstrap else None,
        overhead=overhead(typical, direction),
        totals=overhead(totals, direction),
        tails=tails(grid, arm, base, direction),
        variability_overhead=variability_overhead(described.sd, context.base.sd),
        variability=_variability(grid, arm, context.baseline),
        verdict=verdict,
        findings=tuple(findings),
        looks=seen.looks,
        pairs=seen.pairs,
        notes=(*empty.notes, *notes, *_cautions(context, seen, bootstrap), *drift_note, *_floor_cautions(context)),
    )


def _evidence(context: _Context, name: str, arm: int, base: Sequence[int], trials: Trials) -> Evidence:
    if context.design is Design.SEQUENTIAL:
        return side_by_side(context.grid, arm, base, trials)
    figure = FigureRow(context.workload, context.question.metric, name)
    return paired(context.contrasts[figure], context.looks.get(figure), trials)


def _lone(context: _Context, seen: Evidence) -> Lone | None:
    if seen.lone is None:
        return None
    log = Interval(seen.lone, seen.lone, seen.lone)
    return Lone(ratio(log).point, overhead(log, context.question.direction).point)


def _enough(context: _Context, seen: Evidence) -> Enough | None:
    """Return the blocks until intervals fit into the margin, if there were no difference: half of it on either side."""
    if seen.hidden.no_verdict or seen.looks is None or context.block_s is None:
        return None
    goal = math.log1p(context.question.margin / 2)
    rows = [WidthRow.of(look) for look in seen.looks.all()]
    low, blocks, high = (
        max(blocks_needed(row.half_width, row.n_blocks, goal, row.df, quantile) for row in rows)
        for quantile in (0.05, 0.5, 0.95)
    )
    return Enough(blocks, low, high, blocks * context.block_s) if blocks > seen.n_blocks else None


def _refusal(context: _Context, name: str, arm: int, counts: TrialCounts) -> Verdict | None:
    """Return the reason why there cannot be a ratio, or None."""
    if name in context.unlike:
        return Verdict(VerdictKind.NO_DATA, Reason.NOT_ALIKE, unlike=context.unlike[name])
    grid = context.grid
    if not grid.counts[arm]:
        return _without_samples(counts)
    if not grid.counts[list(context.baseline)].sum():
        return Verdict(VerdictKind.NO_DATA, Reason.NO_BASELINE)
    for reason, arms in ((Reason.UNFIT, [arm]), (Reason.UNFIT_BASELINE, list(context.baseline))):
        unfit = int(grid.unfit[arms].sum())
        if unfit:
            return Verdict(
                VerdictKind.NO_DATA, reason, numbers={"unfit": unfit, "samples": int(grid.counts[arms].sum())}
            )
    return None


def _without_samples(counts: TrialCounts) -> Verdict:
    if counts.ok:
        return Verdict(VerdictKind.NO_DATA, Reason.NOT_SHOWN, numbers={"ok": counts.ok})
    if counts.failed:
        return Verdict(VerdictKind.NO_DATA, Reason.ALL_FAILED, numbers={"failed": counts.failed})
    return Verdict(VerdictKind.NO_DATA, Reason.UNSUPPORTED if counts.unsupported else Reason.NO_DATA)


def _twin(
    shared: _Shared,
    grid: Grid,
    baseline: Sequence[int],
    contrasts: Mapping[FigureRow, Contrast],
    looks: Mapping[FigureRow, Looks],
) -> Evidence | None:
    """Return the baseline's second arm against its first, or None without a second arm or a logarithm."""
    if len(baseline) < 2 or grid.unfit[list(baseline[:2])].any():
        return None
    if shared.record.design is Design.SEQUENTIAL:
        return side_by_side(grid, baseline[1], baseline[:1])
    figure = FigureRow(shared.workload.name, shared.metric.name, None)
    return paired(contrasts[figure], looks.get(figure))


def _noise_floor(question: Question, baseline: Sequence[int], twin: Evidence | None) -> NoiseFloor | None:
    """Return the A/A figure, or None if there is one baseline arm."""
    if len(baseline) < 2:
        return None
    if twin is None:
        return NoiseFloor(None, 0, FloorReason.UNFIT)
    over = noise_floor(question, twin)
    if over is None or twin.looks is None:
        return NoiseFloor(None, twin.n_blocks, FloorReason.TOO_FEW_BLOCKS)
    excludes_zero = over.low > 0 or over.high < 0
    spread = twin.looks.typical.shown
    return NoiseFloor(over, twin.n_blocks, None, excludes_zero, _detectable(spread.error, spread.df))


def _detectable(error: float, df: float) -> float | None:
    """Return the smallest difference that would be found, or None without noise or where blocks are worlds apart."""
    least = smallest_effect(error, df) if error > 0 else math.inf
    return math.expm1(least) if least < _WORLDS_APART else None


def _variability(grid: Grid, arm: int, baseline: Sequence[int]) -> Interval | None:
    """Return the variability overhead with its 95 % interval, or None with too few blocks or without noise."""
    base = np.concatenate([grid.block_values(baseline_arm) for baseline_arm in baseline])
    try:
        return variability(sd_ratio_bonett(grid.block_values(arm), base))
    except NoAnswer:
        return None


def _describe(grid: Grid, arms: Sequence[int]) -> Description:
    """Describe the block values of these arms together."""
    return Description.of(np.concatenate([grid.block_values(arm) for arm in arms] or [np.empty(0)]))


def _blocks_with(grid: Grid, arm: int) -> set[int]:
    return set(grid.blocks[~np.isnan(grid.values[arm]).all(axis=1)].tolist())


# --- cautions ----------------------------------------------------------------------------------------------


def _cautions(context: _Context, seen: Evidence, bootstrap: Interval | None) -> list[Finding]:
    """Return the warnings that belong beside the verdict."""
    notes = []
    count, question = seen.n_blocks, context.question
    if count < context.n_blocks:
        numbers = {"missing": context.n_blocks - count, "blocks": context.n_blocks}
        notes.append(Finding(FindingKind.BLOCKS_LEFT_OUT, numbers))
    if seen.pairs is not None and seen.pairs.single_baseline:
        numbers = {"single": seen.pairs.single_baseline, "blocks": count}
        notes.append(Finding(FindingKind.SINGLE_BASELINE, numbers))
    if bootstrap is not None and seen.looks is not None:
        typical, totals = intervals_of(seen.looks)
        bootstrap_verdict = decide(question, replace(typical, wide=bootstrap), totals, seen.hidden)
        if bootstrap_verdict is not decide(question, typical, totals, seen.hidden):
            over = overhead(bootstrap, question.direction)
            ends = {"point": over.point, "low": over.low, "high": over.high}
            notes.append(Finding(FindingKind.BOOTSTRAP, ends, verdict=bootstrap_verdict))
    if context.design is Design.SEQUENTIAL:
        notes.append(Finding(FindingKind.AFTER_EACH_OTHER))
    return notes


def _floor_cautions(context: _Context) -> list[Finding]:
    floor, margin = context.floor, context.question.margin
    if floor is None:
        return [Finding(FindingKind.ONE_BASELINE)]
    if floor.interval is None:
        return [Finding(FindingKind.NO_FLOOR)]
    notes = []
    if floor.interval.half_width > margin:
        notes.append(Finding(FindingKind.WIDE_FLOOR, {"half_width": floor.interval.half_width}))
    if floor.excludes_zero and context.closed is None and abs(floor.interval.point) > margin / 2:
        notes.append(Finding(FindingKind.FLOOR_EXCLUDES_ZERO))
    return notes


def _contamination(counts: TrialCounts) -> list[Finding]:
    if not counts.contaminated:
        return []
    return [Finding(FindingKind.CONTAMINATED, {"marked": counts.contaminated, "ok": counts.ok, **counts.reasons})]


def _flag_disagreement(results: list[MetricResult]) -> list[MetricResult]:
    """Add a finding to a CPU cost whose verdict differs from that of the workload's headline metric."""
    sure = {VerdictKind.SLOWER, VerdictKind.FASTER, *EQUAL}
    headline = {platform.platform: platform.verdict.kind for platform in results[0].platforms}
    flagged = []
    for result in results:
        platforms = []
        for platform in result.platforms:
            kinds = {headline[platform.platform], platform.verdict.kind}
            differ = len(kinds) == 2 and kinds != EQUAL
            if result.metric == CPU_COST and differ and kinds <= sure:
                kind, metric = headline[platform.platform], results[0].metric
                note = Finding(FindingKind.HEADLINE_DIFFERS, verdict=kind, metric=metric)
                platform = replace(platform, notes=(*platform.notes, note))  # noqa: PLW2901 (the amended one)
            platforms.append(platform)
        flagged.append(replace(result, platforms=tuple(platforms)))
    return flagged
