"""Verdicts as codes and figures; made by `tare.analysis.rule`, with sentences by `tare.report.sentences`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tare.analysis.hidden import Hidden
from tare.estimates.intervals import Interval
from tare.model import Direction

NOTHING_HIDDEN = Hidden()


class VerdictKind(StrEnum):
    """The verdicts on a platform's metric."""

    BASELINE = "baseline"
    SLOWER = "slower"
    FASTER = "faster"
    EQUIVALENT = "equivalent"
    TYPICAL = "typical"  # Equivalent in all that was seen; an unseen rare slow mode could break the margin.
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    NO_DATA = "no-data"


class Reason(StrEnum):
    """Basis of a verdict, or the obstacle to another. In brackets: its `Verdict.numbers`."""

    BASELINE = "baseline"
    # Slower and faster: the look that shows it. Equivalent and typical: both looks.
    TYPICAL_ROUND = "typical-round"
    WHOLE_BLOCKS = "whole-blocks"
    WITHIN_MARGIN = "within-margin"
    # Inconclusive.
    TOO_FEW_BLOCKS = "too-few-blocks"  # (blocks)
    ONE_BLOCK = "one-block"
    UNRELIABLE = "unreliable"  # Too many trials failed, or nothing varies in too few blocks.
    CHANCE = "chance"  # Without a difference, more than 1 of 100 campaigns would show as much.
    LOOKS_DIFFER = "looks-differ"  # Whole blocks, or failed trials, may lie on the other side of the margin.
    BLOCKS_WIDER = "blocks-wider"  # Within the margin in a typical round, but not over whole blocks.
    FAILED_BEYOND = "failed-beyond"  # Failed trials may lie beyond the margin.
    SIZE_OPEN = "size-open"  # `certain` of the side, but it is open if the difference exceeds the margin.
    WIDE_INTERVAL = "wide-interval"
    WIDE_FLOOR = "wide-floor"  # (half_width: of the noise floor)
    # Invalid.
    BASELINES_DIFFER = "baselines-differ"  # (point, low, high: the overhead of one baseline arm against the other)
    BASELINES_DRIFT = "baselines-drift"  # (correlation, size), as for the next, of one baseline arm against the other
    DRIFT = "drift"  # (correlation: with the block; size: how far from the first to the last, a log)
    # No data.
    NO_DATA = "no-data"
    UNSUPPORTED = "unsupported"
    ALL_FAILED = "all-failed"  # (failed)
    NOT_SHOWN = "not-shown"  # No good trial could show it (ok).
    NO_BASELINE = "no-baseline"
    UNFIT = "unfit"  # Samples without a ratio (unfit, samples).
    UNFIT_BASELINE = "unfit-baseline"  # The baseline's samples without a ratio (unfit, samples).
    NOT_ALIKE = "not-alike"  # A fact makes the comparison unfair: `Verdict.unlike`
    ALL_MARKED = "all-marked"  # Without the contaminated trials no block is left.


#: A figure that exists but is refused, because it would mislead.
REFUSED = frozenset({Reason.UNFIT, Reason.UNFIT_BASELINE, Reason.NOT_ALIKE})


class BaselineSide(StrEnum):
    """The side of the baseline on which a platform lies, by its 99 % interval."""

    WORSE = "worse"
    BETTER = "better"


#: No difference that counts, in all that was seen.
EQUAL = frozenset({VerdictKind.EQUIVALENT, VerdictKind.TYPICAL})


@dataclass(frozen=True, slots=True)
class Basis:
    """Input of a verdict: 95 % intervals of the log ratio to the baseline."""

    typical: Interval  # Of the typical round.
    totals: Interval | None = None  # Of whole blocks; None: the same, because a block has one round.
    unseen: Hidden = NOTHING_HIDDEN


@dataclass(frozen=True, slots=True)
class Enough:
    """Number of blocks until an interval fits into the margin, if there were no difference, and their duration.

    ``low`` to ``high``: in 90 of 100 campaigns, because few blocks know their own noise only roughly.
    """

    blocks: int
    low: int
    high: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict with its reason.

    ``certain``: the side of a difference, of whatever size. None: unknown.
    """

    kind: VerdictKind
    reason: Reason
    certain: BaselineSide | None = None
    basis: Basis | None = None  # None: there is no interval, nor a single block's figure.
    numbers: Mapping[str, float] = field(default_factory=dict)
    unlike: tuple[str, ...] = ()  # Facts of the fairness manifest.
    enough: Enough | None = None


@dataclass(frozen=True, slots=True)
class Closed:
    """Reason why a metric, or one platform in it, gets no verdict; ``numbers``: see `Reason`."""

    reason: Reason
    numbers: Mapping[str, float]

    def verdict(self, basis: Basis | None) -> Verdict:
        """Return the verdict `invalid`, in place of any other; ``basis``: the input of the verdict that it replaces."""
        return Verdict(VerdictKind.INVALID, self.reason, basis=basis, numbers=self.numbers)


@dataclass(frozen=True, slots=True)
class Question:
    """Subject of a verdict: the metric's name, its direction, its margin as a fraction."""

    metric: str
    direction: Direction
    margin: float
