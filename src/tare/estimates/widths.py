"""How precise a workload's figures are, and how many more blocks they need: by widths, never by verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare import lazily
from tare.estimates.intervals import half_width
from tare.estimates.looks import Look

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")

#: A difference this many half-widths beyond the margin needs no narrower interval for its verdict ...
CLEAR = 4.0
#: ... but its size shall be known to a tenth: "66 times" is 60 to 73.
LOOSEST = 0.1
#: A half-width (a log) that answers a question, though it may not be a verdict: ± 15 %.
ANSWER = math.log(1.15)
#: Fewer degrees of freedom say too little of a width for it to end anything: a variance that is small by luck would.
MIN_DF = 5.0
#: Fewer blocks are not enough for what was asked for, however narrow their intervals are.
MIN_ENOUGH = 6
#: The most blocks that are given as an answer.
MAX_BLOCKS = 10**9


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of one platform: its mean log ratio, the 95 % half-width of that, and the blocks behind it.

    ``df``: the degrees of freedom of the half-width; None: those of its blocks.
    """

    point: float
    half_width: float
    n_blocks: int
    df: float | None = None

    @classmethod
    def of(cls, look: Look) -> Row:
        """The row of a platform's look."""
        return cls(look.point, half_width(look.shown.error, look.shown.df), look.n_blocks, look.shown.df)

    def goal(self, target: float, margin: float) -> float:
        """The half-width of the log ratio that is narrow enough. ``target`` and ``margin`` are fractions.

        ``ln(1 + target)``; and where the ratio lies far beyond the margin, a quarter of how far, at most `LOOSEST`.
        That asks for a width, not for a verdict: at nine standard errors from the margin luck moves neither the verdict
        nor the interval's coverage (bench/bench_many.py; to stop where a verdict is first seen brings that to 83 %).
        A target below half of the margin was asked for the figure's own sake, and is kept.
        """
        narrow = math.log1p(target)
        if target < margin / 2:
            return narrow
        return max(narrow, min(LOOSEST, (abs(self.point) - math.log1p(margin)) / CLEAR))

    def missing(self, target: float, margin: float) -> int:
        """Blocks until the half-width is its goal; 0 where it is."""
        return max(self.until(self.goal(target, margin)), MIN_ENOUGH - self.n_blocks)

    def until(self, goal: float) -> int:
        """Blocks until the half-width is ``goal``, of a row that is known well enough to say so; 0 where it is."""
        if self.half_width > goal:
            return max(1, blocks_needed(self.half_width, self.n_blocks, goal, self.df) - self.n_blocks)
        df = self.n_blocks - 1.0 if self.df is None else self.df
        return max(0, math.ceil(MIN_DF - df))

    @property
    def answer(self) -> float:
        """The half-width with which the figure answers a question: `ANSWER`, or a quarter of how far it is from none.

        The second is the width of a verdict on what differs much. Like every goal it asks for a width.
        """
        return max(ANSWER, abs(self.point) / CLEAR)


@dataclass(frozen=True, slots=True)
class WorkloadWidths:
    """How wide a workload's intervals are: a row a platform for its headline and its CPU cost, where these have one."""

    rows: tuple[Row, ...] = ()

    def missing(self, target: float, margin: float) -> int:
        """Blocks until every row is known well enough; 0 where all are, or where more blocks would help none."""
        return max((row.missing(target, margin) for row in self.rows), default=0)

    def missing_for_answers(self) -> int:
        """Blocks until every row answers a question; 0 where all do."""
        return max((row.until(row.answer) for row in self.rows), default=0)


def blocks_needed(
    half_width: float, n_blocks: int, target: float, df: float | None = None, quantile: float = 0.5
) -> int:
    """Blocks in all for a 95 % half-width of ``target``, when ``n_blocks`` (2 or more) gave ``half_width``.

    The least n with ``t(0.975, n - 1 + prior) s / sqrt(n) <= target``, where the prior is what ``df`` has beyond the
    n_blocks - 1 of the blocks themselves (None: nothing). From few blocks s is mostly too small, so it is divided by
    the median of its distribution (the root of chi-squared over its degrees of freedom): half of the answers are too
    high and half too low. Another ``quantile`` gives the number of blocks that is enough in that share of campaigns.
    Both widths in the same unit, natural logarithms of ratios. At most `MAX_BLOCKS`.
    """
    if half_width <= target:
        return n_blocks
    known = n_blocks - 1.0 if df is None else df
    prior = known - (n_blocks - 1)
    deviation = half_width * math.sqrt(n_blocks) / float(special.stdtrit(known, 0.975))
    deviation /= math.sqrt(float(special.chdtri(known, quantile)) / known)
    low, high = n_blocks, MAX_BLOCKS
    while high - low > 1:
        middle = (low + high) // 2
        if float(special.stdtrit(middle - 1 + prior, 0.975)) * deviation / math.sqrt(middle) <= target:
            high = middle
        else:
            low = middle
    return high
