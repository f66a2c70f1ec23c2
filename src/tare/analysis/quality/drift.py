"""Drift: a ratio that changes during a campaign, so that one figure for it means nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tare import lazily
from tare.analysis.evidence import Evidence
from tare.analysis.verdicts import Closed, Question, Reason

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = lazily.LazyModule("scipy.stats")

#: Rank correlation of a block's number with its ratio beyond which it drifts, from `DRIFT_FROM` blocks on. With few
#: blocks chance gives as much, so it must be improbable (`DRIFT_P`) too.
DRIFT_LIMIT, DRIFT_FROM, DRIFT_P = 0.3, 10, 0.001
#: A drift that closes a figure must be less likely by chance: for forty figures without drift, once in 250 campaigns.
CLOSING_P = 0.0001


@dataclass(frozen=True, slots=True)
class Drift:
    """Monotonic trend of a ratio: Spearman's correlation with the block, and the change over the campaign, a log."""

    correlation: float
    size: float
    p: float

    def closes(self, question: Question) -> Closed | None:
        """Return the reason for no verdict if the ratio drifts by more than half of the margin, or None."""
        if self.p >= CLOSING_P or abs(self.size) <= question.margin / 2:
            return None
        return Closed(Reason.DRIFT, {"correlation": self.correlation, "size": self.size})


def drift(seen: Evidence) -> Drift | None:
    """Return the drift of the blocks' ratios, with its size by Theil and Sen's slope, or None."""
    pairs = seen.pairs
    if pairs is None or pairs.logs.size < DRIFT_FROM or np.ptp(pairs.logs) == 0:
        return None
    correlation = stats.spearmanr(pairs.blocks, pairs.logs)
    if abs(correlation.statistic) <= DRIFT_LIMIT or correlation.pvalue >= DRIFT_P:
        return None
    slope = float(stats.theilslopes(pairs.logs, pairs.blocks).slope)
    return Drift(float(correlation.statistic), slope * float(np.ptp(pairs.blocks)), float(correlation.pvalue))
