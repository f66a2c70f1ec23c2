"""Steadiness of a campaign: the sources of its ratios' spread, and the changes of ratios and trajectories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tare.analysis.grids import grid_of, metric_parts
from tare.analysis.quality.change_points import MAX_VALUES, MIN_STRETCH, ChangePoint, change_points
from tare.analysis.quality.variance import Components, best_rounds, components, standard_error
from tare.analysis.refusals import NoAnswer, RefusalKind, RefusedAnswer
from tare.estimates.grid import Floats, Grid, block_ratios, round_ratios
from tare.model import CPU_COST, Mode
from tare.store import CampaignRecord, WorkloadRecord, workload_seconds


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Steadiness of a platform's log ratios to the baseline; for the baseline, of its second arm's to its first.

    ``parts`` is None with one round a block, and if ``reason`` says why. ``twice_rounds``: factor of the standard error
    with twice the rounds (with twice the blocks: always 1/√2). ``changes``: in the order of blocks with a ratio.
    """

    workload: str
    metric: str
    platform: str
    n_blocks: int
    sd: float | None = None  # Of a block's ratio; None below two blocks.
    parts: Components | None = None
    twice_rounds: float | None = None
    best_rounds: int | None = None  # For the same time; None: more are always worth it, or unknown.
    changes: tuple[ChangePoint, ...] | None = None  # None: fewer blocks than a change needs.
    reason: RefusedAnswer | None = (
        None  # The reason why the spread cannot be split into that of blocks and that of rounds.
    )


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A metric over the iterations of one trial, medians over the blocks, in the metric's unit."""

    workload: str
    metric: str
    platform: str
    unit: str
    n: int
    first: float
    last: float
    changes: tuple[ChangePoint, ...]


def steadiness(
    record: CampaignRecord, samples: pl.DataFrame, slices: pl.DataFrame, trials: pl.DataFrame
) -> list[Steadiness]:
    """Return headline and CPU cost of each workload, the baseline first. Frames are those of `tare.store.Store`."""
    parts = metric_parts(samples)
    seconds, per_round = workload_seconds(trials), _round_seconds(slices)
    results = []
    for workload in record.workloads:
        for metric in workload.metrics:
            part = parts.get((workload.name, metric.name))
            if part is not None and (metric is workload.metrics[0] or metric.name == CPU_COST):
                grid = grid_of(record, workload, metric, part)
                costs = _costs(grid, seconds.get(workload.name), per_round.get(workload.name))
                empty = Steadiness(workload.name, metric.name, "", 0)
                results += [
                    _steady(replace(empty, platform=name), grid, arm, base, costs)
                    for name, arm, base in _pairs(record, grid)
                ]
    return results


def trajectories(record: CampaignRecord, samples: pl.DataFrame) -> list[Trajectory]:
    """Return every metric with many values in a row in each trial, by platform, with its changes."""
    parts = metric_parts(samples)
    results: list[Trajectory] = []
    for workload in record.workloads:
        if workload.mode is Mode.SLICES:  # Its rounds lie between those of others, and are paired with them.
            continue
        for metric in workload.metrics:
            part = parts.get((workload.name, metric.name))
            if part is not None:
                grid = grid_of(record, workload, metric, part)
                results += _trajectories(workload, metric.name, metric.unit, grid)
    return results


def _pairs(record: CampaignRecord, grid: Grid) -> Iterator[tuple[str, int, list[int]]]:
    """Yield each platform with the positions of its arm and of the baseline arms to compare it with."""
    base = grid.of_platform(record.baseline)
    if len(base) > 1:
        yield record.baseline, base[1], base[:1]
    for at, arm in enumerate(grid.arms):
        if arm.platform != record.baseline:
            yield arm.platform, at, base


def _steady(
    result: Steadiness, grid: Grid, arm: int, base: Sequence[int], costs: tuple[float, float] | None
) -> Steadiness:
    if grid.unfit[[arm, *base]].any():
        return replace(result, reason=RefusedAnswer(RefusalKind.NO_LOGARITHM))
    ratios = block_ratios(grid, arm, base)
    result = replace(result, n_blocks=len(ratios.logs))
    if result.n_blocks > 1:
        result = replace(result, sd=float(ratios.logs.std(ddof=1)))
    if 2 * MIN_STRETCH <= result.n_blocks <= MAX_VALUES:
        result = replace(result, changes=tuple(change_points(ratios.logs)))
    rows = round_ratios(grid, arm, base)
    blocks = [present for row in rows if (present := row[~np.isnan(row)]).size]
    if all(block.size == 1 for block in blocks):
        return replace(result, reason=RefusedAnswer(RefusalKind.ONE_ROUND))
    try:
        parts = components(blocks)
    except NoAnswer as error:
        return replace(result, reason=error.refusal)
    rounds = max(1, round(parts.rounds))
    now = standard_error(parts, blocks=parts.n_blocks, rounds=rounds)
    return replace(
        result,
        parts=parts,
        twice_rounds=standard_error(parts, blocks=parts.n_blocks, rounds=2 * rounds) / now,
        best_rounds=best_rounds(parts, block_cost=costs[0], round_cost=costs[1]) if costs else None,
    )


def _round_seconds(slices: pl.DataFrame) -> dict[str, float]:
    """Return the seconds of a slice, by workload."""
    if slices.is_empty():
        return {}
    means = slices.group_by("workload").agg(pl.col("wall_ns").mean() / 1e9)
    return {str(name): float(seconds) for name, seconds in means.iter_rows()}


def _costs(grid: Grid, block_s: float | None, slice_s: float | None) -> tuple[float, float] | None:
    """Return the seconds of a block without its rounds, and of a round of all arms; None without slices."""
    if block_s is None or slice_s is None:
        return None
    arms, _, rounds = grid.values.shape
    return max(0.0, block_s - rounds * arms * slice_s), arms * slice_s


def _trajectories(workload: WorkloadRecord, metric: str, unit: str, grid: Grid) -> Iterator[Trajectory]:
    for name in dict.fromkeys(arm.platform for arm in grid.arms):
        rows: Floats = grid.values[grid.of_platform(name)].reshape(-1, grid.values.shape[2])
        present = ~np.isnan(rows).all(axis=0)
        line = np.nanmedian(rows[:, present], axis=0) if present.any() else np.empty(0)
        if 2 * MIN_STRETCH <= line.size <= MAX_VALUES and np.isfinite(line).all():
            changes = tuple(change_points(line))
            yield Trajectory(workload.name, metric, name, unit, line.size, float(line[0]), float(line[-1]), changes)
