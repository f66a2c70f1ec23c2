"""Reasons why data have no answer, as codes and values; `tare.report.sentences.refusal_words` has the sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class RefusalKind(StrEnum):
    """Reason for no answer: a lack of the data, or an invalid question."""

    # Of one sample, which is named.
    DIMENSIONS = "dimensions"
    TOO_FEW = "too-few"
    NOT_FINITE = "not-finite"
    EXTREME = "extreme"
    NOT_POSITIVE = "not-positive"
    ALL_ALIKE = "all-alike"
    TOO_MANY = "too-many"
    NO_LOGARITHM = "no-logarithm"
    # Of several samples.
    ONE_GROUP = "one-group"
    GROUPS_CONSTANT = "groups-constant"
    VALUES_ALIKE = "values-alike"
    # Of platforms by block.
    NO_RATIOS = "no-ratios"  # A platform's samples have no logarithm.
    ONE_PLATFORM = "one-platform"
    PAIR_TOO_FEW_BLOCKS = "pair-too-few-blocks"  # Blocks in which both have a value.
    PAIR_NO_NOISE = "pair-no-noise"  # They differ by the same in every block.
    INFINITE = "infinite"
    TABLE_BY_BLOCK = "table-by-block"
    NAMES = "names"
    NO_WHOLE_COMPARISON = "no-whole-comparison"
    # Of values in blocks.
    ONE_BLOCK = "one-block"
    ONE_ROUND = "one-round"  # A block has one figure.
    NO_ROUNDS = "no-rounds"
    BLOCKS_CONSTANT = "blocks-constant"
    # Of two campaigns, or of two platforms of a campaign.
    OTHER_BASELINES = "other-baselines"
    SAME_CAMPAIGN = "same-campaign"
    NO_BASELINE_BESIDE = "no-baseline-beside"
    COMPUTED_DIFFERENTLY = "computed-differently"
    NOTHING_IN_COMMON = "nothing-in-common"
    NOTHING_IN_COMMON_OF_PLATFORMS = "nothing-in-common-of-platforms"
    NO_INSTRUCTIONS_IN_COMMON = "no-instructions-in-common"
    NO_SUCH_PLATFORM = "no-such-platform"
    NO_CAMPAIGN = "no-campaign"
    # Of scores.
    NOT_A_NUMBER = "not-a-number"
    BASELINE_NOT_POSITIVE = "baseline-not-positive"
    TRIALS = "trials"
    TABLE = "table"
    HOLES = "holes"
    DIRECTIONS = "directions"
    COLUMN = "column"
    NO_BASELINE_FIGURE = "no-baseline-figure"
    FIGURE_NOT_POSITIVE = "figure-not-positive"
    BASELINE_FIGURE_NOT_POSITIVE = "baseline-figure-not-positive"
    NO_SUCH_FEATURE = "no-such-feature"
    # Of sets over repeats.
    LEVELS = "levels"
    NOTHING_SHARED = "nothing-shared"
    NOTHING_ESTIMATED = "nothing-estimated"
    NOTHING_SEEN = "nothing-seen"
    # Of the request for an estimate.
    LEVEL = "level"
    LEVEL_NEEDS_MORE = "level-needs-more"
    P_VALUES = "p-values"
    COSTS = "costs"
    NO_WORK = "no-work"
    SHORTEST = "shortest"
    ALPHA = "alpha"


@dataclass(frozen=True, slots=True)
class RefusedAnswer:
    """A refusal with its subject: names of samples, platforms or files in the order of its sentence, and numbers."""

    kind: RefusalKind
    names: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)


class NoAnswer(ValueError):  # noqa: N818 (a statement about the data, as good as any figure)
    """The data cannot answer the question; carries the reason. No figure is given in its place."""

    def __init__(self, kind: RefusalKind, *names: str, **numbers: float) -> None:
        self.refusal = RefusedAnswer(kind, names, numbers)
        super().__init__(self.refusal)
