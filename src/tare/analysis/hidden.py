"""Limits of a platform's samples: trials that failed, and slow modes too rare to be seen in so few draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare import lazily

if TYPE_CHECKING:
    from scipy import special
else:  # Loading all of `scipy.stats` would take a third of a report's processor time.
    special = lazily.LazyModule("scipy.special")


#: Assumed speed of an unseen run: half of the usual speed, as with a CPU shared with another program.
SLOW = 0.5
#: Above this share of failed trials, its own or the baseline's, the remaining trials do not represent all.
FAILED_LIMIT = 0.10
#: Blocks without any difference that make a verdict: from eight on a sign test is below 1 % (2 / 2^8).
BLOCKS_WITHOUT_SPREAD = 8
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Trials:
    """Numbers of trials of a workload on a platform and on the baseline, and how many of them failed."""

    failed: int = 0
    trials: int = 0
    baseline_failed: int = 0
    baseline_trials: int = 0

    @property
    def share(self) -> float:
        """The failed share of the platform's trials."""
        return self.failed / self.trials if self.trials else 0.0

    @property
    def baseline_share(self) -> float:
        """The failed share of the baseline's trials."""
        return self.baseline_failed / self.baseline_trials if self.baseline_trials else 0.0


@dataclass(frozen=True, slots=True)
class Hidden:
    """Allowances for unseen runs, failed or rare; losses are logs of speed."""

    failed: float = 0.0  # If the platform's failed trials were runs at half speed.
    baseline_failed: float = 0.0  # If the baseline's failed trials were runs at half speed.
    possible: float = 0.0  # If as many unseen runs as possible were at half speed.
    share: float = 0.0  # The share of these runs.
    draws: int = 0
    blocks: int = 0  # Number of starts.
    no_verdict: bool = False  # Too many failed, or nothing varies in too few blocks.


def hidden(draws: int, blocks: int, trials: Trials, *, too_few: bool = False) -> Hidden:
    """Return the allowances for ``draws`` samples in ``blocks`` starts, without those of failed trials.

    ``too_few``: nothing varies, in too few blocks for a verdict.
    """
    failed = round(draws * trials.share / (1 - trials.share)) if trials.share < 1 else draws
    share = highest_share(failed, draws + failed)
    return Hidden(
        loss(trials.share),
        loss(trials.baseline_share),
        loss(share),
        share,
        draws,
        blocks,
        no_verdict=too_few or max(trials.share, trials.baseline_share) > FAILED_LIMIT,
    )


def highest_share(seen: int, draws: int) -> float:
    """Return the largest share of a mode seen ``seen`` times in ``draws``, at 95 % (Clopper and Pearson, 1934).

    If it was never seen, 1 - 0.05^(1/n), about 3/n: the rule of three (Hanley and Lippman-Hand, 1983).
    """
    if seen >= draws:
        return 1.0
    return float(special.betaincinv(seen + 1, draws - seen, _CONFIDENCE))


def loss(share: float) -> float:
    """Return the log of speed that is lost if this share of the time runs at `SLOW` speed."""
    return -math.log1p(-share * (1 - SLOW))
