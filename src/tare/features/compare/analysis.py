"""Comparisons of all pairs of platforms, also without the baseline: paired over blocks, or as groups side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analysis.comparisons.many import AllPairs, all_pairs
from tare.analysis.comparisons.sides import log_ratios
from tare.analysis.comparisons.unpaired import (
    GroupPair,
    Overall,
    games_howell,
    kruskal_wallis,
    one_way,
    rank_pairs,
    tukey,
    welch,
)
from tare.analysis.grids import grid_of, metric_parts
from tare.analysis.refusals import NoAnswer, RefusalKind, RefusedAnswer
from tare.estimates.grid import Grid
from tare.model import CPU_COST, Design, Direction
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord

_Groups = Mapping[str, NDArray[np.float64]]


class Procedure(StrEnum):
    """A test of groups, all at once or by pairs."""

    WELCH = "welch"
    GAMES_HOWELL = "games-howell"
    ANOVA = "anova"
    TUKEY = "tukey"
    KRUSKAL_WALLIS = "kruskal-wallis"
    RANK_SUMS = "rank-sums"  # p values by Holm.


@dataclass(frozen=True, slots=True)
class Test:
    """A test of all groups at once, with a test of its pairs. Each has a result, or a reason why it has none."""

    overall: Procedure
    pairwise: Procedure
    result: Overall | None = None
    pairs: tuple[GroupPair, ...] = ()
    reason: RefusedAnswer | None = None  # The reason for no ``result``.
    pairs_reason: RefusedAnswer | None = None  # The reason for no pairs.


@dataclass(frozen=True, slots=True)
class Compared:
    """Comparison of all pairs of platforms in one metric, in logs; ``reason`` if the data have no answer.

    ``pairs`` if blocks pair the platforms. ``tests`` if they ran one after the other: Welch's first, which does not
    assume equal variances; then those of the studies. ``left_out``: platforms without ratios; the others are still
    compared.
    """

    workload: str
    metric: str
    direction: Direction
    pairs: AllPairs | None = None
    tests: tuple[Test, ...] = ()
    reason: RefusedAnswer | None = None
    left_out: tuple[str, ...] = ()


def compare(record: CampaignRecord, samples: pl.DataFrame, platforms: Sequence[str] = ()) -> list[Compared]:
    """Compare all pairs in every headline and CPU cost. ``platforms``: only these, and the baseline; empty: all."""
    chosen = [
        platform.name
        for platform in record.platforms
        if not platforms or platform.name in {*platforms, record.baseline}
    ]
    parts = metric_parts(samples)
    comparisons = []
    for workload in record.workloads:
        for number, metric in enumerate(workload.metrics):
            part = parts.get((workload.name, metric.name))
            if part is not None and (number == 0 or metric.name == CPU_COST):
                comparisons.append(_compare(record, workload, metric, part, chosen))
    return comparisons


def _compare(
    record: CampaignRecord, workload: WorkloadRecord, metric: MetricRecord, part: pl.DataFrame, chosen: Sequence[str]
) -> Compared:
    grid = grid_of(record, workload, metric, part)
    present = [name for name in chosen if grid.counts[grid.of_platform(name)].any()]
    unfit = [name for name in present if grid.unfit[grid.of_platform(name)].any()]
    empty = Compared(workload.name, metric.name, metric.direction, left_out=tuple(unfit))
    fit = [name for name in present if name not in unfit]
    # The others' ratios are relative to the baseline.
    if record.baseline in unfit and record.design is not Design.SEQUENTIAL:
        return replace(empty, reason=RefusedAnswer(RefusalKind.NO_RATIOS, (record.baseline,)))
    if len(fit) < 2 and unfit:
        return replace(empty, reason=RefusedAnswer(RefusalKind.NO_RATIOS, (unfit[0],)))
    if record.design is Design.SEQUENTIAL:
        tests = _tests(grid, fit)
        answered = any(test.result or test.pairs for test in tests)
        return replace(empty, tests=tests) if answered else replace(empty, reason=tests[0].reason)
    try:
        table = np.column_stack([log_ratios(grid, name, record.baseline) for name in fit])
        return replace(empty, pairs=all_pairs(table, fit))
    except NoAnswer as error:
        return replace(empty, reason=error.refusal)


def _tests(grid: Grid, names: Sequence[str]) -> tuple[Test, ...]:
    """Return the three tests with their pairs, each with a result or a reason."""
    groups = {name: np.log(grid.block_values(grid.of_platform(name)[0])) for name in names}
    return (
        _test(Procedure.WELCH, Procedure.GAMES_HOWELL, welch, games_howell, groups),
        _test(Procedure.ANOVA, Procedure.TUKEY, one_way, tukey, groups),
        _test(Procedure.KRUSKAL_WALLIS, Procedure.RANK_SUMS, kruskal_wallis, rank_pairs, groups),
    )


def _test(
    overall: Procedure,
    pairwise: Procedure,
    test_all: Callable[[_Groups], Overall],
    test_pairs: Callable[[_Groups], tuple[GroupPair, ...]],
    groups: _Groups,
) -> Test:
    test = Test(overall, pairwise)
    try:
        test = replace(test, result=test_all(groups))
    except NoAnswer as why:
        test = replace(test, reason=why.refusal)
    try:
        return replace(test, pairs=test_pairs(groups))
    except NoAnswer as why:
        return replace(test, pairs_reason=why.refusal)
