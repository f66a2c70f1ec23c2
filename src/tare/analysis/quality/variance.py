"""Components of the variance: blocks, and rounds within them, with the best number of rounds in a block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tare import lazily
from tare.analysis.input_checks import level_of, sample, spread
from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.estimates.intervals import Interval

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")


@dataclass(frozen=True, slots=True)
class Components:
    """Variances in the unit of the values squared; a block has ``rounds`` rounds (a mean if they differ)."""

    n_blocks: int
    n_values: int
    rounds: float  # The n0 of unbalanced designs: N - Σn²/N over n_blocks - 1.
    mean_square_between: float
    mean_square_within: float
    within: float  # Of rounds within a block.
    between: float  # Of blocks; an estimate below zero counts as zero.
    icc: Interval  # between / (between + within): the correlation of two rounds of a block.


def components(blocks: Sequence[ArrayLike], *, level: float = 0.95) -> Components:
    """Return the variance components of values in blocks, by the mean squares of one-way analysis of variance.

    Blocks may have different numbers of rounds (Searle, Casella and McCulloch, Variance Components, 1992). The interval
    of the intraclass correlation is exact for normal values in equal blocks, otherwise approximate. Raises `NoAnswer`
    below two blocks, if no block has two values, for missing values, and if no values differ within blocks.
    """
    level_of(level)
    arrays = [sample(values, f"block {at}") for at, values in enumerate(blocks)]
    if len(arrays) < 2:
        raise NoAnswer(RefusalKind.ONE_BLOCK)
    sizes = np.array([block.size for block in arrays], dtype=np.float64)
    a, n = len(arrays), int(sizes.sum())
    if n == a:
        raise NoAnswer(RefusalKind.NO_ROUNDS)
    if not any(spread(block) for block in arrays):
        raise NoAnswer(RefusalKind.BLOCKS_CONSTANT)
    means = np.array([block.mean() for block in arrays])
    grand = float((sizes * means).sum()) / n
    square_between = float((sizes * (means - grand) ** 2).sum()) / (a - 1)
    square_within = sum(float(((block - block.mean()) ** 2).sum()) for block in arrays) / (n - a)
    rounds = (n - float((sizes**2).sum()) / n) / (a - 1)
    between = max(0.0, (square_between - square_within) / rounds)
    ratio = square_between / square_within
    tails = special.fdtri(a - 1, n - a, [(1 - level) / 2, (1 + level) / 2])
    icc = Interval(
        between / (between + square_within),
        _icc(ratio / float(tails[1]), rounds),
        _icc(ratio / float(tails[0]), rounds),
    )
    return Components(a, n, rounds, square_between, square_within, square_within, between, icc)


def best_rounds(variances: Components, *, block_cost: float, round_cost: float) -> int | None:
    """Return the rounds in a block that give the mean's narrowest interval for a given total cost.

    Near √(block_cost / round_cost x within / between) (Kalibera and Jones, ISMM 2013), rounded to the better neighbour.
    Costs are in any one unit, for example seconds: of a fresh start, and of a round. None if no variance between blocks
    was seen, because more rounds are then always worth it. Raises `NoAnswer` for costs that are negative or not finite,
    and for rounds that cost nothing.
    """
    if not (math.isfinite(block_cost) and math.isfinite(round_cost) and block_cost >= 0 and round_cost > 0):
        raise NoAnswer(RefusalKind.COSTS, block=block_cost, round=round_cost)
    if variances.between == 0:
        return None
    middle = math.sqrt(block_cost / round_cost * variances.within / variances.between)
    low = max(1, math.floor(middle))
    return min((low, low + 1), key=lambda r: (variances.between + variances.within / r) * (block_cost + r * round_cost))


def standard_error(variances: Components, *, blocks: int, rounds: int) -> float:
    """Return the mean's standard error for these numbers of blocks and rounds, in the unit of the values.

    Raises `NoAnswer` for less than one block or round.
    """
    if blocks < 1 or rounds < 1:
        raise NoAnswer(RefusalKind.NO_WORK)
    return math.sqrt((variances.between + variances.within / rounds) / blocks)


def _icc(ratio: float, rounds: float) -> float:
    """Return the correlation for a ratio of mean squares; below zero counts as zero."""
    return max(0.0, (ratio - 1) / (ratio + rounds - 1))
