"""Calibration of measurements on this host, from comparisons whose true difference is known: none, or added work."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare import lazily
from tare.analysis.evidence import evidence
from tare.analysis.grids import grid_of, metric_parts
from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.analysis.rule import WIDE, settle
from tare.analysis.verdicts import EQUAL, Question, VerdictKind
from tare.estimates.dependence import Dependence, dependence
from tare.estimates.grid import BlockRatios, Grid, block_ratios
from tare.estimates.intervals import Interval, half_width, smallest_effect, t_interval
from tare.estimates.overhead import overhead
from tare.model import Arm, Direction
from tare.store import CampaignRecord, MetricRecord, WorkloadRecord

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = lazily.LazyModule("scipy.stats")

#: Arms of a comparison, as in a campaign: one in the role of a platform, and two of the baseline.
TRIPLE = 3


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of the baseline with itself: overhead with its 95 % interval, and a campaign's verdict."""

    over: Interval
    kind: VerdictKind


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of comparisons with its exact 95 % interval (Clopper and Pearson, 1934)."""

    count: int
    of: int
    low: float
    high: float

    @classmethod
    def of_counts(cls, count: int, of: int) -> Rate:
        """Create a rate from counts. Raises `ValueError` if ``of`` is zero."""
        interval = stats.binomtest(count, of).proportion_ci(0.95, method="exact")
        return cls(count, of, float(interval.low), float(interval.high))

    @property
    def share(self) -> float:
        """The counted comparisons as a share of all of them, from 0 to 1."""
        return self.count / self.of


@dataclass(frozen=True, slots=True)
class Trust:
    """Results of comparisons without a difference. Overheads are fractions; ``seconds``: a block of three arms."""

    metric: str
    margin: float
    false_alarms: Rate  # Verdicts slower or faster.
    covered: Rate  # Intervals that contain zero.
    equivalent: Rate  # Equivalent in all that was seen.
    invalid: int  # The two baseline arms differ, or a ratio drifts: `rule.settle`.
    bias: Interval  # Mean overhead, 95 %.
    half_width: float  # Median over comparisons, of 95 % intervals.
    block_sd: float  # Of a block's log ratio, within comparisons.
    seconds: float
    dependence: Dependence | None = None  # Of blocks' log ratios, over the whole campaign; None: too few blocks.

    def half_width_after(self, seconds: float) -> float:
        """Return half of the 95 % interval's width for a pair after this time, as a fraction; nan below two blocks."""
        blocks = int(seconds / self.seconds)
        if blocks < 2:
            return math.nan
        return half_width(self.block_sd / math.sqrt(blocks), blocks - 1)

    def smallest_effect(self, seconds: float) -> float:
        """Return the smallest effect found in this time at the 1 % level with a power of `POWER`, as a log ratio.

        (t.995 + t.90) s / sqrt(n); nan below two blocks.
        """
        blocks = int(seconds / self.seconds)
        if blocks < 2:
            return math.nan
        return smallest_effect(self.block_sd / math.sqrt(blocks), blocks - 1, level=0.99)


@dataclass(frozen=True, slots=True)
class Injected:
    """Work that was added to a platform on purpose, and the measured share of it."""

    platform: str
    metric: str
    share: float  # Added share of the work.
    measured: Interval  # 95 %, as a share of the time or cost.
    n_blocks: int

    @property
    def is_found(self) -> bool:
        """True if the interval excludes zero on the right side."""
        return self.measured.low > 0

    @property
    def miss(self) -> float:
        """The measured share minus the added share."""
        return self.measured.point - self.share


def trust(record: CampaignRecord, samples: pl.DataFrame, block_s: float, blocks_each: int) -> list[Trust]:
    """Return the error rates of comparisons of the baseline with itself, by metric of an A/A campaign's workload.

    ``block_s``: seconds of a block of all its arms; ``blocks_each``: blocks of one comparison. Raises `NoAnswer` if no
    comparison has all its samples.
    """
    [workload] = record.workloads
    parts, by_metric = metric_parts(samples), []
    for metric in workload.metrics:
        grid = grid_of(record, workload, metric, parts.get((workload.name, metric.name), samples.clear()))
        by_metric.append(_trust(grid, workload, metric, block_s * TRIPLE / len(grid.arms), blocks_each))
    return by_metric


def longer_trust(
    record: CampaignRecord, samples: pl.DataFrame, block_s: float, lengths_s: Sequence[float]
) -> list[tuple[float, Trust]]:
    """Return the results of `trust` for comparisons of several lengths, each as (length, result).

    Lengths are in seconds of three arms. A length of fewer than two blocks, or above the campaign's, is left out.
    Raises the errors of `trust`.
    """
    triple_s = block_s * TRIPLE / len(record.all_arms())
    by_length = []
    for length_s in lengths_s:
        blocks = int(length_s / triple_s)
        if 2 <= blocks <= samples["block"].n_unique():
            by_length += [(length_s, metric_trust) for metric_trust in trust(record, samples, block_s, blocks)]
    return by_length


def _trust(grid: Grid, workload: WorkloadRecord, metric: MetricRecord, seconds: float, blocks_each: int) -> Trust:
    question = Question(metric.name, metric.direction, workload.margin)
    compared, deviations = [], []
    for blocks in np.array_split(np.arange(grid.blocks.size), max(1, grid.blocks.size // blocks_each)):
        part = _some(grid, blocks)
        for first in range(0, len(grid.arms) - TRIPLE + 1, TRIPLE):
            result = _compare(part, first, question)
            if result is not None:
                compared.append(result[0])
                deviations.append(result[1])
    if not compared:
        raise NoAnswer(RefusalKind.NO_WHOLE_COMPARISON)
    kinds = Counter(comparison.kind for comparison in compared)
    n_comparisons = len(compared)
    holds = sum(comparison.over.low <= 0 <= comparison.over.high for comparison in compared)
    return Trust(
        metric=metric.name,
        margin=workload.margin,
        false_alarms=Rate.of_counts(kinds[VerdictKind.SLOWER] + kinds[VerdictKind.FASTER], n_comparisons),
        covered=Rate.of_counts(holds, n_comparisons),
        equivalent=Rate.of_counts(sum(kinds[kind] for kind in EQUAL), n_comparisons),
        invalid=kinds[VerdictKind.INVALID],
        bias=_mean([comparison.over.point for comparison in compared]),
        half_width=float(np.median([comparison.over.half_width for comparison in compared])),
        block_sd=math.sqrt(float(np.mean(np.square(deviations)))),
        seconds=seconds,
        dependence=dependence(_series(grid)),
    )


def _series(grid: Grid) -> list[BlockRatios]:
    """Return the log ratios of every comparison's arms, over all blocks."""
    triples = [[at, at + 1, at + 2] for at in range(0, len(grid.arms) - TRIPLE + 1, TRIPLE)]
    return [block_ratios(grid, arms[0], arms[1:]) for arms in triples if not grid.unfit[arms].any()]


def _mean(values: Sequence[float]) -> Interval:
    return t_interval(np.array(values), 0.95) if len(values) > 1 else Interval(values[0], -math.inf, math.inf)


def _compare(grid: Grid, first: int, question: Question) -> tuple[Comparison, float] | None:
    """Compare the arm ``first`` with the next two, as in a campaign; None if samples are missing.

    Returns the comparison, and the SD of its blocks.
    """
    arms = [first, first + 1, first + 2]
    if grid.unfit[arms].any():
        return None
    # Use the spread of its own blocks, because one workload has too few figures to borrow from.
    seen, twin = evidence(grid, first, arms[1:]), evidence(grid, arms[2], arms[1:2])
    if seen.looks is None or seen.pairs is None:
        return None
    over = overhead(seen.looks.typical.interval(WIDE), question.direction)
    return Comparison(over, settle(question, seen, twin).kind), float(seen.pairs.logs.std(ddof=1))


def _some(grid: Grid, blocks: NDArray[np.int64]) -> Grid:
    values = grid.values[:, blocks]
    return replace(grid, blocks=grid.blocks[blocks], values=values)


def injected(record: CampaignRecord, samples: pl.DataFrame, added: Sequence[tuple[str, str, float]]) -> list[Injected]:
    """Return the measured shares of added work. ``added``: a platform, its copy with more work, and the added share.

    The measured share is from the log ratio of the copy to the platform itself in the same blocks: exp(r) - 1 of a
    cost, or 1 / exp(r) - 1 of a rate. Copies with fewer than two blocks are left out.
    """
    [workload] = record.workloads
    parts, measured = metric_parts(samples), []
    for metric in workload.metrics:
        grid = grid_of(record, workload, metric, parts.get((workload.name, metric.name), samples.clear()))
        for platform, copy, share in added:
            arm, base = grid.arms.index(Arm(copy)), grid.of_platform(platform)
            if grid.unfit[[arm, *base]].any():
                continue
            seen = evidence(grid, arm, base)
            if seen.looks is None:
                continue
            logs = seen.looks.typical.interval(WIDE)
            sign = 1.0 if metric.direction is Direction.LOWER else -1.0
            ends = sorted(math.expm1(sign * end) for end in (logs.low, logs.high))
            point = math.expm1(sign * logs.point)
            measured.append(Injected(platform, metric.name, share, Interval(point, *ends), seen.n_blocks))
    return measured
