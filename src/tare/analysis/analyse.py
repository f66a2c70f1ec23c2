"""From a campaign's samples to its results: frames and the record's facts in, figures out, without side effects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tare.analysis.amounts import Scale, amount, scale
from tare.analysis.counts import CountsByArm, count_trials, trials_of
from tare.analysis.evidence import Evidence, evidence
from tare.analysis.grids import grid_of, metric_parts
from tare.analysis.refusals import NoAnswer
from tare.analysis.results import Counts, Description, FloorReason, Lone, MetricResult, NoiseFloor, PlatformResult
from tare.analysis.trust import contamination
from tare.analysis.trust.caveats import caveats
from tare.analysis.trust.client import flag_client
from tare.analysis.trust.clocks import flag_clocks
from tare.analysis.trust.drift import drift
from tare.analysis.trust.fairness import refusals
from tare.analysis.trust.findings import Finding, FindingKind
from tare.analysis.trust.spread import sd_ratio_bonett, variability
from tare.analysis.trust.tails import tails
from tare.analysis.trust.unmarked import with_unmarked
from tare.analysis.verdicts import (
    EQUAL,
    Basis,
    Closed,
    Enough,
    Kind,
    LogIntervals,
    Question,
    Reason,
    Verdict,
    aa_gate,
    decide,
    judge,
    too_few,
    within_noise,
)
from tare.estimates.grid import Grid, reference, weighted
from tare.estimates.intervals import Interval, smallest_effect, standard_error
from tare.estimates.overhead import overhead, ratio, variability_overhead
from tare.estimates.widths import blocks_needed
from tare.model import CPU_COST, Design
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord, workload_seconds


@dataclass(frozen=True, slots=True)
class _Context:
    """What all platforms of one metric share."""

    grid: Grid
    question: Question
    scale: Scale  # of the amount that a platform adds
    design: Design
    baseline: tuple[int, ...]  # positions of its arms
    n_blocks: int  # of the campaign, with any trial of this workload
    floor: NoiseFloor | None
    closed: Closed | None  # why the metric has no verdicts
    base: Description
    unlike: Mapping[str, tuple[str, ...]]  # what makes comparing a platform unfair, by its name
    block_s: float | None  # what a block of the workload takes
    counts: Counts  # of the baseline


def analyse(
    record: CampaignRecord,
    samples: pl.DataFrame,
    trials: pl.DataFrame,
    marked: pl.DataFrame | None = None,
    slices: pl.DataFrame | None = None,
) -> list[MetricResult]:
    """Analyse every metric of every workload in the record, in its order.

    ``samples``, ``trials`` and ``slices`` are the frames of `tare.store.Store`; ``marked``: the contaminated trials, by
    default as far as the trials' own rows show; without ``slices`` all rounds of a block have the same weight in its
    total. A platform or metric without usable samples gets a verdict with the reason.
    """
    if slices is not None:
        samples = weighted(samples, slices)
    if marked is None:
        marked = contamination.marks(trials, None, record.resources.cpus)
    counts = count_trials(trials, marked)
    blocks = dict(trials.group_by("workload").agg(pl.col("block").n_unique()).iter_rows())
    parts, clean = (metric_parts(frame) for frame in (samples, contamination.without(samples, marked)))
    nothing = samples.clear()
    results = []
    seconds = workload_seconds(trials)
    for workload in record.workloads:
        times = (blocks.get(workload.name, 0), seconds.get(workload.name))
        workload_results = []
        for metric in workload.metrics:
            key = workload.name, metric.name
            part, clean_part = parts.get(key, nothing), clean.get(key, nothing)
            result = _metric(record, workload, metric, part, counts, *times)
            if clean_part.height < part.height:
                result = with_unmarked(result, _metric(record, workload, metric, clean_part, counts, *times))
            workload_results.append(result)
        flagged = flag_client(record, workload, _flag_disagreement(workload_results))
        results += flag_clocks(workload.name, flagged, trials)
    return results


def _metric(
    record: CampaignRecord,
    workload: WorkloadRecord,
    metric: MetricRecord,
    samples: pl.DataFrame,
    counts: CountsByArm,
    n_blocks: int,
    block_s: float | None,
) -> MetricResult:
    grid = grid_of(record, workload, metric, samples)
    question = Question(metric.name, metric.direction, workload.margin)
    baseline = tuple(grid.of_platform(record.baseline))
    floor, closed = _noise_floor(grid, question, baseline, record.design)
    described = _describe(grid, baseline)
    nothing = Counts()
    baseline_counts = counts.get((workload.name, record.baseline), nothing)
    context = _Context(
        grid=grid,
        scale=scale(metric.unit, workload.family, workload.work_unit),
        question=question,
        design=record.design,
        baseline=baseline,
        n_blocks=n_blocks,
        floor=floor,
        closed=closed,
        base=described,
        unlike=refusals(record),
        block_s=block_s,
        counts=baseline_counts,
    )
    compared = dict.fromkeys(arm.platform for arm in grid.arms if arm.platform != record.baseline)
    platforms = [_baseline(context, record.baseline, baseline_counts)]
    platforms += [_platform(context, name, counts.get((workload.name, name), nothing)) for name in compared]
    return MetricResult(
        workload.name, metric.name, metric.unit, metric.direction, workload.margin, floor, tuple(platforms)
    )


def _baseline(context: _Context, name: str, counts: Counts) -> PlatformResult:
    n_blocks = len(set().union(*(_blocks_with(context.grid, arm) for arm in context.baseline)))
    verdict = Verdict(Kind.BASELINE, Reason.BASELINE) if n_blocks else Verdict(Kind.NO_DATA, Reason.NO_DATA)
    return PlatformResult(
        platform=name,
        n_blocks=n_blocks,
        n_left_out=context.n_blocks - n_blocks,
        counts=counts,
        described=context.base,
        verdict=verdict,
        notes=tuple(_contamination(counts)),
    )


def _platform(context: _Context, name: str, counts: Counts) -> PlatformResult:
    grid = context.grid
    (arm,) = grid.of_platform(name)[:1]
    described = _describe(grid, [arm])
    design = context.design
    base = reference(grid, grid.arms[context.baseline[0]].platform, design)
    added = None if name in context.unlike else amount(grid, arm, base, design, context.scale)
    marked = tuple(_contamination(counts))
    empty = PlatformResult(name, 0, context.n_blocks, counts, described, amount=added, notes=marked)
    refusal = _refusal(context, name, arm, counts)
    if refusal is not None:
        return replace(empty, verdict=refusal)
    trials = trials_of(counts, context.counts)
    contrast = evidence(grid, arm, base, design, trials)
    count, logs = contrast.n_blocks, contrast.logs
    result = replace(empty, n_blocks=count, n_left_out=context.n_blocks - count)
    if logs is None:
        return replace(result, lone=_lone(context, contrast), verdict=too_few(count, contrast.lone, added))
    findings = caveats(grid, arm, base, context.question, contrast, trials)
    notes = [finding for finding in findings if finding.kind is not FindingKind.UNSEEN]
    verdict = judge(context.question, logs, contrast.totals, contrast.hidden, added)
    verdict = within_noise(verdict, context.question.margin, context.floor.interval if context.floor else None)
    if verdict.kind is Kind.INCONCLUSIVE:
        verdict = replace(verdict, enough=_enough(context, contrast, count))
    drifts = drift(contrast)
    closing = drifts.closes(context.question) if drifts else None
    closed = context.closed or closing
    if closed is not None:
        verdict = closed.verdict(Basis(logs.wide, amount=added))
    drift_note = []
    if drifts is not None and closing is None:
        drift_note.append(Finding(FindingKind.DRIFT, {"correlation": drifts.correlation}))
    return replace(
        result,
        ratio=ratio(logs.wide),
        bootstrap=ratio(contrast.bootstrap) if contrast.bootstrap else None,
        overhead=overhead(logs.wide, context.question.direction),
        totals=overhead((contrast.totals or logs).wide, context.question.direction),
        tails=tails(grid, arm, base, context.question.direction),
        variability_overhead=variability_overhead(described.sd, context.base.sd),
        variability=_variability(grid, arm, context.baseline),
        verdict=verdict,
        findings=tuple(findings),
        pairs=contrast.pairs,
        notes=(*empty.notes, *notes, *_cautions(context, contrast, logs), *drift_note, *_floor_cautions(context)),
    )


def _lone(context: _Context, contrast: Evidence) -> Lone | None:
    if contrast.lone is None:
        return None
    log = Interval(contrast.lone, contrast.lone, contrast.lone)
    return Lone(ratio(log).point, overhead(log, context.question.direction).point)


def _enough(context: _Context, contrast: Evidence, n_blocks: int) -> Enough | None:
    """How long until the intervals fit into the margin, were there no difference: half of it on either side."""
    looks = [look for look in (contrast.logs, contrast.totals) if look is not None]
    if contrast.hidden.no_verdict or not looks:
        return None
    widest = max(look.wide.half_width for look in looks)
    blocks = blocks_needed(widest, n_blocks, math.log1p(context.question.margin / 2))
    if blocks <= n_blocks or context.block_s is None:
        return None
    return Enough(blocks, blocks * context.block_s)


def _refusal(context: _Context, name: str, arm: int, counts: Counts) -> Verdict | None:
    """Why there cannot be a ratio, or None."""
    if name in context.unlike:
        return Verdict(Kind.NO_DATA, Reason.NOT_ALIKE, unlike=context.unlike[name])
    grid = context.grid
    if not grid.counts[arm]:
        return _without_samples(counts)
    if not grid.counts[list(context.baseline)].sum():
        return Verdict(Kind.NO_DATA, Reason.NO_BASELINE)
    for reason, arms in ((Reason.UNFIT, [arm]), (Reason.UNFIT_BASELINE, list(context.baseline))):
        unfit = int(grid.unfit[arms].sum())
        if unfit:
            return Verdict(Kind.NO_DATA, reason, numbers={"unfit": unfit, "samples": int(grid.counts[arms].sum())})
    return None


def _without_samples(counts: Counts) -> Verdict:
    if counts.ok:
        return Verdict(Kind.NO_DATA, Reason.NOT_SHOWN, numbers={"ok": counts.ok})
    if counts.failed:
        return Verdict(Kind.NO_DATA, Reason.ALL_FAILED, numbers={"failed": counts.failed})
    return Verdict(Kind.NO_DATA, Reason.UNSUPPORTED if counts.unsupported else Reason.NO_DATA)


def _noise_floor(
    grid: Grid, question: Question, baseline: Sequence[int], design: Design
) -> tuple[NoiseFloor | None, Closed | None]:
    """The A/A figure, and why it closes the metric (None when it does not)."""
    if len(baseline) < 2:
        return None, None
    first, second = baseline[:2]
    if grid.unfit[[first, second]].any():
        return NoiseFloor(None, 0, FloorReason.UNFIT), None
    contrast = evidence(grid, second, [first], design)
    if contrast.logs is None:
        return NoiseFloor(None, contrast.n_blocks, FloorReason.TOO_FEW_BLOCKS), None
    over = overhead(contrast.logs.wide, question.direction)
    excludes_zero = over.low > 0 or over.high < 0
    closed = aa_gate(question, contrast.logs)
    drifts = drift(contrast)
    if closed is None and drifts is not None and (why := drifts.closes(question)) is not None:
        closed = replace(why, reason=Reason.BASELINES_DRIFT)
    error = standard_error(contrast.logs.wide, contrast.n_blocks)
    least = math.expm1(smallest_effect(error, contrast.n_blocks)) if error > 0 else None
    return NoiseFloor(over, contrast.n_blocks, None, excludes_zero, least), closed


def _variability(grid: Grid, arm: int, baseline: Sequence[int]) -> Interval | None:
    """Variability overhead with its 95 % interval; None where there are too few blocks, or no noise."""
    base = np.concatenate([grid.block_values(baseline_arm) for baseline_arm in baseline])
    try:
        return variability(sd_ratio_bonett(grid.block_values(arm), base))
    except NoAnswer:
        return None


def _describe(grid: Grid, arms: Sequence[int]) -> Description:
    """Of the block values of these arms together."""
    return Description.of(np.concatenate([grid.block_values(arm) for arm in arms] or [np.empty(0)]))


def _blocks_with(grid: Grid, arm: int) -> set[int]:
    return set(grid.blocks[~np.isnan(grid.values[arm]).all(axis=1)].tolist())


# --- cautions ----------------------------------------------------------------------------------------------


def _cautions(context: _Context, contrast: Evidence, logs: LogIntervals) -> list[Finding]:
    """Warnings that belong beside the verdict."""
    notes = []
    count, question = contrast.n_blocks, context.question
    if count < context.n_blocks:
        numbers = {"missing": context.n_blocks - count, "blocks": context.n_blocks}
        notes.append(Finding(FindingKind.BLOCKS_LEFT_OUT, numbers))
    if contrast.pairs is not None and contrast.pairs.single_baseline:
        numbers = {"single": contrast.pairs.single_baseline, "blocks": count}
        notes.append(Finding(FindingKind.SINGLE_BASELINE, numbers))
    if contrast.bootstrap is not None:
        bootstrap_verdict = decide(question, replace(logs, wide=contrast.bootstrap), contrast.totals, contrast.hidden)
        if bootstrap_verdict is not decide(question, logs, contrast.totals, contrast.hidden):
            over = overhead(contrast.bootstrap, question.direction)
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


def _contamination(counts: Counts) -> list[Finding]:
    if not counts.contaminated:
        return []
    return [Finding(FindingKind.CONTAMINATED, {"marked": counts.contaminated, "ok": counts.ok, **counts.reasons})]


def _flag_disagreement(results: list[MetricResult]) -> list[MetricResult]:
    """Add a finding to the CPU cost where its verdict differs from that of the workload's headline metric."""
    sure = {Kind.SLOWER, Kind.FASTER, *EQUAL}
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
