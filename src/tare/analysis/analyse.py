"""From a campaign's samples to its results. Pure: frames and the record's facts in, figures out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analysis import contamination
from tare.analysis.amounts import Scale, amount, scale
from tare.analysis.caveats import caveats
from tare.analysis.counts import CountsByArm, count_trials, trials_of
from tare.analysis.drift import drift
from tare.analysis.evidence import Evidence, evidence
from tare.analysis.fairness import refusals
from tare.analysis.findings import FindingKind, sentence
from tare.analysis.inputs import NoAnswer
from tare.analysis.results import Counts, Description, Lone, MetricResult, NoiseFloor, PlatformResult
from tare.analysis.spread import sd_ratio_bonett, variability
from tare.analysis.tails import tails
from tare.analysis.unmarked import beside
from tare.analysis.verdicts import (
    EQUAL,
    Kind,
    LogIntervals,
    Question,
    Verdict,
    decide,
    describe,
    gate,
    judge,
    too_few,
)
from tare.analysis.wording import wording
from tare.analysis.words import percent, signed_range, span
from tare.estimates.grid import Grid, harmonic, reference, weighted
from tare.estimates.intervals import Interval, smallest_effect, standard_error
from tare.estimates.overhead import overhead, ratio, variability_overhead
from tare.estimates.widths import blocks_needed
from tare.model import CPU_COST, Design
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord, workload_seconds

#: How the note begins that holds for a whole row: a report may gather such rows into one line.
WIDE_FLOOR = "the noise floor"

#: Said of everything that a sequential campaign shows.
AFTER_EACH_OTHER = "the platforms ran one after the other: what the machine did meanwhile is in the figures"


@dataclass(frozen=True, slots=True)
class _Context:
    """What all platforms of one metric share."""

    grid: Grid
    unit: str
    question: Question
    scale: Scale  # of what is added
    design: Design
    baseline: tuple[int, ...]  # positions of its arms
    n_blocks: int  # of the campaign, with any trial of this workload
    floor: NoiseFloor | None
    closed: str | None  # why nothing can be said of the metric
    base: Description
    refused: Mapping[str, str]  # why a platform is not compared, by its name
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
    default as far as the trials' own rows tell; without ``slices`` all of a block weigh alike in its total. What is
    missing gives a verdict that says so.
    """
    if slices is not None:
        samples = weighted(samples, slices)
    if marked is None:
        marked = contamination.marks(trials, None, record.resources.cpus)
    counts = count_trials(trials, marked)
    blocks = dict(trials.group_by("workload").agg(pl.col("block").n_unique()).iter_rows())
    parts, clean = (_by_metric(frame) for frame in (samples, contamination.without(samples, marked)))
    nothing = samples.clear()
    results = []
    seconds = workload_seconds(trials)
    for workload in record.workloads:
        times = (blocks.get(workload.name, 0), seconds.get(workload.name))
        found = []
        for metric in workload.metrics:
            key = workload.name, metric.name
            part, left = parts.get(key, nothing), clean.get(key, nothing)
            result = _metric(record, workload, metric, part, counts, *times)
            if left.height < part.height:
                result = beside(result, _metric(record, workload, metric, left, counts, *times))
            found.append(result)
        results += _flag_disagreement(found)
    return results


def _by_metric(samples: pl.DataFrame) -> dict[tuple[str, str], pl.DataFrame]:
    parts = samples.partition_by("workload", "metric", as_dict=True, include_key=False)
    return {(str(workload), str(metric)): part for (workload, metric), part in parts.items()}


def _metric(
    record: CampaignRecord,
    workload: WorkloadRecord,
    metric: MetricRecord,
    samples: pl.DataFrame,
    counts: CountsByArm,
    n_blocks: int,
    block_s: float | None,
) -> MetricResult:
    grid = Grid.of(
        samples,
        record.all_arms(),
        harmonic=harmonic(metric.direction, workload.mode),
        resolution=metric.resolution,
    )
    words = wording(metric.name, metric.unit, metric.direction, workload.family)
    question = Question(metric.name, metric.direction, workload.margin, words)
    baseline = tuple(grid.of_platform(record.baseline))
    floor, closed = _noise_floor(grid, question, baseline, record.design)
    described = _describe(grid, baseline)
    nothing = Counts()
    own = counts.get((workload.name, record.baseline), nothing)
    context = _Context(
        grid=grid,
        unit=metric.unit,
        scale=scale(metric.unit, workload.family, workload.work_unit),
        question=question,
        design=record.design,
        baseline=baseline,
        n_blocks=n_blocks,
        floor=floor,
        closed=closed,
        base=described,
        refused=refusals(record),
        block_s=block_s,
        counts=own,
    )
    others = dict.fromkeys(arm.platform for arm in grid.arms if arm.platform != record.baseline)
    platforms = [_baseline(context, record.baseline, own)]
    platforms += [_platform(context, name, counts.get((workload.name, name), nothing)) for name in others]
    return MetricResult(
        workload.name, metric.name, metric.unit, metric.direction, workload.margin, floor, tuple(platforms)
    )


def _baseline(context: _Context, name: str, counts: Counts) -> PlatformResult:
    n_blocks = len(set().union(*(_blocks_with(context.grid, arm) for arm in context.baseline)))
    text = "the baseline" if n_blocks else "no data"
    return PlatformResult(
        platform=name,
        n_blocks=n_blocks,
        n_left_out=context.n_blocks - n_blocks,
        counts=counts,
        described=context.base,
        verdict=Verdict(Kind.BASELINE if n_blocks else Kind.NO_DATA, text),
        notes=tuple(_contamination(counts)),
    )


def _platform(context: _Context, name: str, counts: Counts) -> PlatformResult:
    grid = context.grid
    (arm,) = grid.of_platform(name)[:1]
    described = _describe(grid, [arm])
    design = context.design
    base = reference(grid, grid.arms[context.baseline[0]].platform, design)
    added = None if name in context.refused else amount(grid, arm, base, design, context.scale)
    marked = tuple(_contamination(counts))
    empty = PlatformResult(name, 0, context.n_blocks, counts, described, amount=added, notes=marked)
    refusal = context.refused.get(name) or _refusal(context, arm, counts)
    if refusal is not None:
        return replace(empty, verdict=Verdict(Kind.NO_DATA, refusal))
    trials = trials_of(counts, context.counts)
    seen = evidence(grid, arm, base, design, trials)
    count, logs = seen.n_blocks, seen.logs
    result = replace(empty, n_blocks=count, n_left_out=context.n_blocks - count)
    if logs is None:
        return replace(result, lone=_lone(context, seen), verdict=too_few(context.question, count, seen.lone, added))
    findings = caveats(grid, arm, base, context.question, seen, trials)
    notes = [sentence(finding, context.unit) for finding in findings if finding.kind is not FindingKind.UNSEEN]
    verdict = _within_noise(context, judge(context.question, logs, seen.totals, seen.hidden, added), logs)
    if verdict.kind is Kind.INCONCLUSIVE:
        verdict = replace(verdict, text=verdict.text + _would_take(context, seen, count))
    drifts = drift(seen)
    closing = drifts.closes(context.question) if drifts else None
    closed = context.closed or closing
    if closed is not None:
        what = describe(context.question, logs.wide, added)
        verdict = Verdict(Kind.INVALID, f"invalid: {closed}; what was seen: {what}")
    drift_note = [str(drifts)] if drifts is not None and closing is None else []
    return replace(
        result,
        ratio=ratio(logs.wide),
        bootstrap=ratio(seen.bootstrap) if seen.bootstrap else None,
        overhead=overhead(logs.wide, context.question.direction),
        totals=overhead((seen.totals or logs).wide, context.question.direction),
        tails=tails(grid, arm, base, context.question.direction),
        variability_overhead=variability_overhead(described.sd, context.base.sd),
        variability=_variability(grid, arm, context.baseline),
        verdict=verdict,
        findings=tuple(findings),
        pairs=seen.pairs,
        notes=(*empty.notes, *notes, *_cautions(context, seen, logs), *drift_note, *_floor_cautions(context)),
    )


def _lone(context: _Context, seen: Evidence) -> Lone | None:
    if seen.lone is None:
        return None
    log = Interval(seen.lone, seen.lone, seen.lone)
    return Lone(ratio(log).point, overhead(log, context.question.direction).point)


def _within_noise(context: _Context, verdict: Verdict, logs: LogIntervals) -> Verdict:
    """Equality within a margin that is narrower than the noise floor is luck (METHOD, part 3, point 7)."""
    floor, margin = context.floor, context.question.margin
    if verdict.kind not in EQUAL or floor is None or floor.interval is None:
        return verdict
    if floor.interval.half_width <= margin:
        return verdict
    seen = signed_range(overhead(logs.wide, context.question.direction))
    wider = _wide_floor(floor.interval.half_width, margin)
    return Verdict(Kind.INCONCLUSIVE, f"inconclusive: {seen}, but {wider}")


def _would_take(context: _Context, seen: Evidence, n_blocks: int) -> str:
    """How long until the intervals fit into the margin, were there no difference: half of it on either side."""
    looks = [look for look in (seen.logs, seen.totals) if look is not None]
    if seen.hidden.no_verdict or not looks:
        return ""
    target = context.question.margin / 2
    widest = max(look.wide.half_width for look in looks)
    blocks = blocks_needed(widest, n_blocks, math.log1p(target))
    if blocks <= n_blocks or context.block_s is None:
        return ""
    takes = span(blocks * context.block_s)
    return f"; ±{percent(target)} would take about {blocks} blocks, {takes} of this workload alone"


def _wide_floor(half_width: float, margin: float) -> str:
    return f"{WIDE_FLOOR} ±{percent(half_width)} is wider than the {percent(margin)} margin"


def _refusal(context: _Context, arm: int, counts: Counts) -> str | None:
    """Why there cannot be a ratio, or None."""
    grid = context.grid
    if not grid.counts[arm]:
        if counts.unsupported and not counts.ok and not counts.failed:
            return "no data: the platform cannot do this"
        if counts.failed and not counts.ok:
            return f"no data: all {counts.failed} trials failed"
        return f"no data: none of its {counts.ok} good trials could show this" if counts.ok else "no data"
    if not grid.counts[list(context.baseline)].sum():
        return "no data: the baseline has none to compare with"
    for who, arms in (("samples", [arm]), ("samples of the baseline", list(context.baseline))):
        unfit = int(grid.unfit[arms].sum())
        if unfit:
            total = int(grid.counts[arms].sum())
            return f"refused: {unfit} of {total} {who} are zero, negative or not finite, and have no ratio"
    return None


def _noise_floor(
    grid: Grid, question: Question, baseline: Sequence[int], design: Design
) -> tuple[NoiseFloor | None, str | None]:
    """The A/A figure, and why it closes the metric (None when it does not)."""
    if len(baseline) < 2:
        return None, None
    first, second = baseline[:2]
    if grid.unfit[[first, second]].any():
        return NoiseFloor(None, 0, "samples are zero, negative or not finite"), None
    seen = evidence(grid, second, [first], design)
    if seen.logs is None:
        return NoiseFloor(None, seen.n_blocks, "fewer than 2 blocks have both baseline arms"), None
    over = overhead(seen.logs.wide, question.direction)
    excludes_zero = over.low > 0 or over.high < 0
    closed = gate(question, seen.logs)
    drifts = drift(seen)
    if closed is None and drifts is not None and (why := drifts.closes(question)) is not None:
        closed = f"of the two baseline arms {why}"
    error = standard_error(seen.logs.wide, seen.n_blocks)
    least = math.expm1(smallest_effect(error, seen.n_blocks)) if error > 0 else None
    return NoiseFloor(over, seen.n_blocks, None, excludes_zero, least), closed


def _variability(grid: Grid, arm: int, baseline: Sequence[int]) -> Interval | None:
    """Variability overhead with its 95 % interval; None where there are too few blocks, or no noise."""
    base = np.concatenate([grid.block_values(one) for one in baseline])
    try:
        return variability(sd_ratio_bonett(grid.block_values(arm), base))
    except NoAnswer:
        return None


def _describe(grid: Grid, arms: Sequence[int]) -> Description:
    """Mean, SD and median of the block values of these arms together; none where samples are not finite."""
    values: NDArray[np.float64] = np.concatenate([grid.block_values(arm) for arm in arms] or [np.empty(0)])
    if not values.size or not np.isfinite(values).all():
        return Description(int(values.size), None, None, None)
    deviation = float(values.std(ddof=1)) if values.size > 1 else None
    return Description(int(values.size), float(values.mean()), deviation, float(np.median(values)))


def _blocks_with(grid: Grid, arm: int) -> set[int]:
    return set(grid.blocks[~np.isnan(grid.values[arm]).all(axis=1)].tolist())


# --- cautions ----------------------------------------------------------------------------------------------


def _cautions(context: _Context, seen: Evidence, logs: LogIntervals) -> list[str]:
    """What a careful reader would want to be told beside the verdict."""
    notes = []
    count, question = seen.n_blocks, context.question
    if count < context.n_blocks:
        missing = context.n_blocks - count
        notes.append(f"{missing} of {context.n_blocks} blocks left out: this platform or the baseline has no sample")
    if seen.pairs is not None and seen.pairs.single_baseline:
        notes.append(f"one baseline arm only in {seen.pairs.single_baseline} of {count} blocks")
    if seen.bootstrap is not None:
        other = decide(question, replace(logs, wide=seen.bootstrap), seen.totals, seen.hidden)
        if other is not decide(question, logs, seen.totals, seen.hidden):
            between = signed_range(overhead(seen.bootstrap, question.direction))
            notes.append(f"the bootstrap (BCa) says {other.word}: {between}")
    if context.design is Design.SEQUENTIAL:
        notes.append(AFTER_EACH_OTHER)
    return notes


def _floor_cautions(context: _Context) -> list[str]:
    floor, margin = context.floor, context.question.margin
    if floor is None:
        return ["one baseline arm: no A/A figure, so nobody knows what no difference looks like"]
    if floor.interval is None:
        return [f"no A/A figure: {floor.reason}"]
    notes = []
    if floor.interval.half_width > margin:
        notes.append(_wide_floor(floor.interval.half_width, margin))
    if floor.excludes_zero and context.closed is None and abs(floor.interval.point) > margin / 2:
        notes.append("the A/A interval excludes zero: take this with care")
    return notes


def _contamination(counts: Counts) -> list[str]:
    return [contamination.told(counts.contaminated, counts.ok, counts.reasons)] if counts.contaminated else []


def _flag_disagreement(results: list[MetricResult]) -> list[MetricResult]:
    """Note on the CPU cost where it says another thing than the workload's headline metric."""
    sure = {Kind.SLOWER, Kind.FASTER, *EQUAL}
    headline = {platform.platform: platform.verdict.kind for platform in results[0].platforms}
    flagged = []
    for result in results:
        platforms = []
        for platform in result.platforms:
            kinds = {headline[platform.platform], platform.verdict.kind}
            differ = len(kinds) == 2 and kinds != EQUAL
            if result.metric == CPU_COST and differ and kinds <= sure:
                note = f"differs from {results[0].metric}, which is {headline[platform.platform].word}"
                platform = replace(platform, notes=(*platform.notes, note))  # noqa: PLW2901 (the amended one)
            platforms.append(platform)
        flagged.append(replace(result, platforms=tuple(platforms)))
    return flagged
