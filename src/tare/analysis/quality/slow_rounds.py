"""Slow rounds of a platform beside the baseline's: the speed of the slowest, and stalls."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tare.analysis.evidence import Evidence
from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.results import Tails
from tare.analysis.verdicts import Question
from tare.estimates.grid import Grid
from tare.estimates.intervals import t_interval
from tare.model import Direction

#: A quantile needs this many rounds beyond it: p95 from 100 rounds, p99 from 500.
BEYOND = 5
#: Limit of a normal round on the baseline: slower than its block's median by five robust standard deviations.
_DEVIATIONS = 5 * 1.4826
#: Level at which the two estimates differ other than by chance.
_SURE = 0.99

Floats = NDArray[np.float64]


def tails(grid: Grid, arm: int, baseline: Sequence[int], direction: Direction) -> Tails | None:
    """Return the overheads of slowness at p95 and p99 over the rounds of all blocks; None for one round a block.

    Each round is taken as a multiple of the baseline's total in its block, so drift between blocks is in none of them.
    """
    if grid.values.shape[2] == 1:
        return None
    logs = np.log([grid.totals(base, ~np.isnan(grid.values[base])) for base in baseline])
    usual = np.where(np.isnan(logs), 0.0, logs).sum(axis=0) / np.maximum(1, np.count_nonzero(~np.isnan(logs), axis=0))
    slow = _slowness(grid, arm, baseline, direction) - _sign(direction) * usual[:, None]
    arm_rounds, base_rounds = (rows[~np.isnan(rows)] for rows in (slow[0], slow[1:]))
    return Tails(*(_beyond(arm_rounds, base_rounds, quantile, direction) for quantile in (0.95, 0.99)))


def _beyond(arm_rounds: Floats, base_rounds: Floats, quantile: float, direction: Direction) -> float | None:
    if min(arm_rounds.size, base_rounds.size) * (1 - quantile) < BEYOND - 1e-9:
        return None
    log = float(np.quantile(arm_rounds, quantile) - np.quantile(base_rounds, quantile))
    return math.expm1(log) if direction is Direction.LOWER else -math.expm1(-log)


def stalls(grid: Grid, arm: int, baseline: Sequence[int], question: Question, seen: Evidence) -> Finding | None:
    """Return a finding if whole blocks lose more than the typical round, by at least half of the margin.

    The mean difference of the two estimates of a block has a 99 % interval that excludes zero. Its size comes from the
    rounds that are slower than their block's median by more than the baseline's own rounds are.
    """
    if seen.pairs is None or seen.total_pairs is None:
        return None
    difference = _sign(question.direction) * (seen.total_pairs.logs - seen.pairs.logs)
    interval = t_interval(difference, _SURE)
    if interval.low <= 0 or interval.point < question.margin / 2:
        return None
    slow = _slowness(grid, arm, baseline, question.direction)
    slow = slow[:, ~np.isnan(slow).all(axis=2).any(axis=0)]
    slow = slow - np.nanmedian(slow, axis=2, keepdims=True)
    base = slow[1:]
    cut = max(_DEVIATIONS * float(np.nanmedian(np.abs(base))), question.margin)
    share, speed, lost = _slow_rounds(slow[0], cut)
    baseline_share, _, baseline_lost = _slow_rounds(base, cut)
    if share <= baseline_share:  # The whole differs from the typical round, but not by outstanding rounds.
        return None
    numbers = {"share": share, "speed": speed, "lost": lost}
    return Finding(FindingKind.STALLS, {**numbers, "baseline_share": baseline_share, "baseline_lost": baseline_lost})


def _slow_rounds(slow: Floats, cut: float) -> tuple[float, float, float]:
    """Return the slow rounds' share of rounds, their mean speed (1: usual), and the share of lost work."""
    measured = slow[~np.isnan(slow)]
    beyond = measured[measured > cut]
    if not beyond.size:
        return 0.0, 1.0, 0.0
    share, speed = beyond.size / measured.size, float(np.exp(-beyond).mean())
    return share, speed, share * (1 - speed)


def _slowness(grid: Grid, arm: int, baseline: Sequence[int], direction: Direction) -> Floats:
    """Return logs of the figures of the arm and then of the baseline's, with the sign so that greater is worse."""
    return np.asarray(_sign(direction) * np.log(grid.values[[arm, *baseline]]))


def _sign(direction: Direction) -> float:
    return 1.0 if direction is Direction.LOWER else -1.0
