"""Precision of a workload's figures, and the blocks they still need, from interval widths and never from verdicts."""

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
#: ... but its size should be known to a tenth: "66 times" is 60 to 73.
LOOSEST = 0.1
#: A half-width (a log) that answers a question, even if it gives no verdict: ± 15 %.
ANSWER = math.log(1.15)
#: With fewer degrees of freedom, a variance that is small by luck could end a campaign.
MIN_DF = 5.0
#: Minimum number of blocks, however narrow the intervals are.
MIN_ENOUGH = 6
#: The largest number of blocks to report.
MAX_BLOCKS = 10**9


@dataclass(frozen=True, slots=True)
class WidthRow:
    """One metric of one platform: its mean log ratio, the 95 % half-width, and the number of blocks.

    ``df``: the degrees of freedom of the half-width; None: those of its blocks.
    """

    point: float
    half_width: float
    n_blocks: int
    df: float | None = None

    @classmethod
    def of(cls, look: Look) -> WidthRow:
        """Create the row of a platform's look."""
        return cls(look.point, half_width(look.shown.error, look.shown.df), look.n_blocks, look.shown.df)

    def goal(self, target: float, margin: float) -> float:
        """Return the half-width of the log ratio that is narrow enough. ``target`` and ``margin`` are fractions.

        ``ln(1 + target)``; for a ratio far beyond the margin, a quarter of the distance, at most `LOOSEST`. This goal
        is a width, not a verdict: at nine standard errors from the margin, luck changes neither the verdict nor the
        interval's coverage (bench/bench_many.py; stopping at the first verdict would lower the coverage to 83 %). A
        target below half of the margin was requested for the figure's own sake, and is kept.
        """
        narrow = math.log1p(target)
        if target < margin / 2:
            return narrow
        return max(narrow, min(LOOSEST, (abs(self.point) - math.log1p(margin)) / CLEAR))

    def missing(self, target: float, margin: float) -> int:
        """Return the number of blocks until the half-width reaches its goal; 0 if it has."""
        return max(self.until(self.goal(target, margin)), MIN_ENOUGH - self.n_blocks)

    def until(self, goal: float) -> int:
        """Return the number of blocks until the half-width is at most ``goal`` and known well enough; 0 if it is."""
        if self.half_width > goal:
            return max(1, blocks_needed(self.half_width, self.n_blocks, goal, self.df) - self.n_blocks)
        df = self.n_blocks - 1.0 if self.df is None else self.df
        return max(0, math.ceil(MIN_DF - df))

    @property
    def answer(self) -> float:
        """Return the half-width with which the figure answers a question: `ANSWER`, or a quarter of the difference.

        The second is the width for a verdict on a large difference. Like every goal, it is a width.
        """
        return max(ANSWER, abs(self.point) / CLEAR)


@dataclass(frozen=True, slots=True)
class WorkloadWidths:
    """Interval widths of a workload: a row for each platform's headline and CPU cost, if these exist.

    ``unpaired``: blocks of a workload that the baseline cannot run, and that has values without ratios.
    """

    rows: tuple[WidthRow, ...] = ()
    unpaired: int = 0

    def missing(self, target: float, margin: float) -> int:
        """Return the number of blocks until every row is known well enough; 0 if all are, or more would not help."""
        return max((row.missing(target, margin) for row in self.rows), default=self._missing_unpaired())

    def missing_for_answers(self) -> int:
        """Return the number of blocks until every row answers a question; 0 if all do."""
        return max((row.until(row.answer) for row in self.rows), default=self._missing_unpaired())

    def _missing_unpaired(self) -> int:
        return max(0, MIN_ENOUGH - self.unpaired) if self.unpaired else 0


def blocks_needed(
    half_width: float, n_blocks: int, target: float, df: float | None = None, quantile: float = 0.5
) -> int:
    """Return the total blocks for a 95 % half-width of ``target``, if ``n_blocks`` (2 or more) gave ``half_width``.

    The least n with ``t(0.975, n - 1 + prior) s / sqrt(n) <= target``, where the prior is the part of ``df`` beyond the
    n_blocks - 1 of the blocks themselves (None: zero). From few blocks, s is mostly too small, so it is divided by the
    median of its distribution (the root of chi-squared over its degrees of freedom): half of the answers are then too
    high and half too low. Another ``quantile`` gives the number of blocks that is enough in that share of campaigns.
    Both widths are in the same unit, natural logarithms of ratios. At most `MAX_BLOCKS`.
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
