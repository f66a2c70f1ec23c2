"""Verdicts as codes and figures; `tare.analysis.rule` makes them, and the sentences are `tare.report.sentences`'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tare.analysis.hidden import Hidden
from tare.estimates.intervals import Interval
from tare.model import Direction

NOTHING_HIDDEN = Hidden()


class Kind(StrEnum):
    """The verdicts on a platform's metric."""

    BASELINE = "baseline"
    SLOWER = "slower"
    FASTER = "faster"
    EQUIVALENT = "equivalent"
    TYPICAL = "typical"  # equivalent in all that was seen; a rare slow mode that was not could break the margin
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    NO_DATA = "no-data"


class Reason(StrEnum):
    """What a verdict rests on, or what keeps it from being another. In brackets: its `Verdict.numbers`."""

    BASELINE = "baseline"
    # slower and faster: which look shows it; equivalent and typical: both looks
    TYPICAL_ROUND = "typical-round"
    WHOLE_BLOCKS = "whole-blocks"
    WITHIN_MARGIN = "within-margin"
    # inconclusive
    TOO_FEW_BLOCKS = "too-few-blocks"  # (blocks)
    ONE_BLOCK = "one-block"
    UNRELIABLE = "unreliable"  # too many trials failed, or nothing varies in too few blocks
    CHANCE = "chance"  # were there no difference, more than 1 of 100 campaigns would show as much
    LOOKS_DIFFER = "looks-differ"  # whole blocks, or failed trials, may lie on the other side of the margin
    BLOCKS_WIDER = "blocks-wider"  # within the margin in a typical round, over whole blocks not
    FAILED_BEYOND = "failed-beyond"  # failed trials may lie beyond the margin
    SIZE_OPEN = "size-open"  # `certain` of the side, and open whether by more than the margin
    WIDE_INTERVAL = "wide-interval"
    WIDE_FLOOR = "wide-floor"  # (half_width: of the noise floor)
    # invalid
    BASELINES_DIFFER = "baselines-differ"  # (point, low, high: the overhead of one baseline arm against the other)
    BASELINES_DRIFT = "baselines-drift"  # (correlation, size), as of the next, of one baseline arm against the other
    DRIFT = "drift"  # (correlation: with the block; size: how far from the first to the last, a log)
    # no data
    NO_DATA = "no-data"
    UNSUPPORTED = "unsupported"
    ALL_FAILED = "all-failed"  # (failed)
    NOT_SHOWN = "not-shown"  # no good trial could show it (ok)
    NO_BASELINE = "no-baseline"
    UNFIT = "unfit"  # samples without a ratio (unfit, samples)
    UNFIT_BASELINE = "unfit-baseline"  # the same of the baseline's
    NOT_ALIKE = "not-alike"  # it had what makes the comparison unfair: `Verdict.unlike`
    ALL_MARKED = "all-marked"  # without the contaminated trials no block is left


#: A figure that could be had and is refused, since it would mislead.
REFUSED = frozenset({Reason.UNFIT, Reason.UNFIT_BASELINE, Reason.NOT_ALIKE})


class Side(StrEnum):
    """On which side of the baseline a platform lies, by its 99 % interval."""

    WORSE = "worse"
    BETTER = "better"


#: No difference that counts, in all that was seen.
EQUAL = frozenset({Kind.EQUIVALENT, Kind.TYPICAL})


@dataclass(frozen=True, slots=True)
class Basis:
    """What a verdict was made from: 95 % intervals of the log ratio to the baseline."""

    typical: Interval  # of the typical round
    totals: Interval | None = None  # of whole blocks; None: the same, since a block has one round
    unseen: Hidden = NOTHING_HIDDEN


@dataclass(frozen=True, slots=True)
class Enough:
    """How many blocks would make an interval fit into the margin, were there no difference, and how long they take.

    ``low`` to ``high``: in 90 of 100 campaigns, as few blocks know their own noise roughly.
    """

    blocks: int
    low: int
    high: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict with its reason.

    ``certain``: that there is a difference, and to which side; by how much is another question. None: it is not known.
    """

    kind: Kind
    reason: Reason
    certain: Side | None = None
    basis: Basis | None = None  # None: there is no interval, nor one block's figure
    numbers: Mapping[str, float] = field(default_factory=dict)
    unlike: tuple[str, ...] = ()  # facts of the fairness manifest
    enough: Enough | None = None


@dataclass(frozen=True, slots=True)
class Closed:
    """Why a metric, or one platform in it, gets no verdict; ``numbers``: see `Reason`."""

    reason: Reason
    numbers: Mapping[str, float]

    def verdict(self, basis: Basis | None) -> Verdict:
        """The verdict `invalid`, in place of any other; ``basis``: what it would have been made from."""
        return Verdict(Kind.INVALID, self.reason, basis=basis, numbers=self.numbers)


@dataclass(frozen=True, slots=True)
class Question:
    """What a verdict is about: the metric's name, its direction, its margin as a fraction."""

    metric: str
    direction: Direction
    margin: float
