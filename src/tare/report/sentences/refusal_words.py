"""Texts of why data have no answer, and what a user can do about it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from tare.analysis.refusals import NoAnswer, RefusalKind, RefusedAnswer
from tare.errors import UsageError
from tare.report.sentences.numbers import number_of
from tare.report.sentences.verdict_words import UNFIT

NO_RATIOS = f"samples are {UNFIT}, and have no ratio"
#: With the refusal's names by their place, its numbers by their names.
_TEXTS: Mapping[RefusalKind, str] = {
    RefusalKind.DIMENSIONS: "{0}: one row of numbers is needed, not an array of {dimensions} dimensions",
    RefusalKind.TOO_FEW: "{0}: {values}, at least {at_least} are needed",
    RefusalKind.NOT_FINITE: "{0}: {bad} of {values} missing or not finite",
    RefusalKind.EXTREME: "{0}: {value:g} is no measurement: figures lie between {least:g} and {most:g}",
    RefusalKind.NOT_POSITIVE: "{0}: {bad} of {values} zero or negative",
    RefusalKind.ALL_ALIKE: "{0}: {values}, all the same",
    RefusalKind.TOO_MANY: "{values}, at most {most} are taken: give medians of some each",
    RefusalKind.NO_LOGARITHM: "it has samples without a logarithm (zero, negative, or none)",
    RefusalKind.ONE_GROUP: "a comparison needs at least two groups",
    RefusalKind.GROUPS_CONSTANT: "the values of every group are all the same: no noise to compare with",
    RefusalKind.VALUES_ALIKE: "the values are all the same",
    RefusalKind.NO_RATIOS: f"{{0}}: {NO_RATIOS}",
    RefusalKind.ONE_PLATFORM: "a comparison needs at least two platforms",
    RefusalKind.PAIR_TOO_FEW_BLOCKS: "{0} and {1} both have a value in {blocks}, at least 2 are needed",
    RefusalKind.PAIR_NO_NOISE: "{0} and {1} differ by the same in every block: no noise to compare with",
    RefusalKind.INFINITE: "{infinite} values are infinite: a logarithm of zero?",
    RefusalKind.TABLE_BY_BLOCK: "values by block and platform are needed, not an array of {dimensions} dimensions",
    RefusalKind.NAMES: "{columns} columns need {columns} different names, not {0}",
    RefusalKind.NO_WHOLE_COMPARISON: "no comparison is whole",
    RefusalKind.ONE_BLOCK: "variance between blocks needs at least two blocks",
    RefusalKind.ONE_ROUND: "it has one figure a block",
    RefusalKind.NO_ROUNDS: "variance within blocks needs a block with at least two values",
    RefusalKind.BLOCKS_CONSTANT: "the values of every block are all the same: no variance within blocks",
    RefusalKind.OTHER_BASELINES: "{0} is against {1}, {2} against {3}: overheads do not compare",
    RefusalKind.SAME_CAMPAIGN: "{0} and {1} are the same campaign",
    RefusalKind.NO_BASELINE_BESIDE: "a sequential campaign has no baseline beside each figure",
    RefusalKind.COMPUTED_DIFFERENTLY: "{0} and {1} have no figure in common: those of {2} are computed differently",
    RefusalKind.NOTHING_IN_COMMON: "{0} and {1} have no figure in common",
    RefusalKind.NOTHING_IN_COMMON_OF_PLATFORMS: "{0} and {1} have no figure in common",
    RefusalKind.NO_INSTRUCTIONS_IN_COMMON: "no figure of instructions is on both sides",
    RefusalKind.NO_SUCH_PLATFORM: "{0} did not take part in {1}",
    RefusalKind.NO_CAMPAIGN: "there is no campaign that can be read",
    RefusalKind.NOT_A_NUMBER: "the measured figure is {value}",
    RefusalKind.BASELINE_NOT_POSITIVE: "the baseline must be positive: {value}",
    RefusalKind.TRIALS: "trials are counted: {trials} against {baseline} of the baseline",
    RefusalKind.TABLE: "a table of rows and columns is needed",
    RefusalKind.HOLES: "{cells} cells are missing or not finite: leave their rows out",
    RefusalKind.DIRECTIONS: "{columns} columns need as many directions, not {directions}",
    RefusalKind.COLUMN: "a column needs a positive value, and none that is negative",
    RefusalKind.NO_BASELINE_FIGURE: "{0}: the baseline has no figure",
    RefusalKind.FIGURE_NOT_POSITIVE: "{0}: the figure is {value:g}, it must be positive",
    RefusalKind.BASELINE_FIGURE_NOT_POSITIVE: "{0}: the baseline's figure is {value:g}, it must be positive",
    RefusalKind.NO_SUCH_FEATURE: "{0}: the profile has no feature {1!r}",
    RefusalKind.LEVELS: "footprints of one level are needed, not of {levels}",
    RefusalKind.NOTHING_SHARED: "not enough repeats: what repeats share needs at least two",
    RefusalKind.NOTHING_ESTIMATED: "not enough repeats: an estimate of the unseen needs at least two",
    RefusalKind.NOTHING_SEEN: "nothing was seen in any repeat",
    RefusalKind.LEVEL: "a level of confidence lies between 0 and 1: {level}",
    RefusalKind.LEVEL_NEEDS_MORE: "a level of {level} needs more than {more_than:.1f} values a sample",
    RefusalKind.P_VALUES: "p values lie between 0 and 1",
    RefusalKind.COSTS: "costs must be positive: {block} a block, {round} a round",
    RefusalKind.NO_WORK: "at least one block of one round is needed",
    RefusalKind.SHORTEST: "a stretch needs at least two values: {shortest}",
    RefusalKind.ALPHA: "alpha lies between {least} and 1: {alpha}",
}
_FIXES: Mapping[RefusalKind, str] = {
    RefusalKind.OTHER_BASELINES: "--absolute compares the figures themselves",
    RefusalKind.SAME_CAMPAIGN: "name two campaigns, or two platforms of one: -p docker -p podman",
    RefusalKind.NO_BASELINE_BESIDE: "--absolute",
    RefusalKind.COMPUTED_DIFFERENTLY: "run both with the same version of tare",
    RefusalKind.NOTHING_IN_COMMON: "name campaigns of one plan",
    RefusalKind.NOTHING_IN_COMMON_OF_PLATFORMS: "name platforms that ran the same",
    RefusalKind.NO_INSTRUCTIONS_IN_COMMON: "count the same platforms and workloads",
    RefusalKind.NO_SUCH_PLATFORM: "name two of {2}",
    RefusalKind.NO_CAMPAIGN: "name a folder with *.tare files",
}
#: Numbers that are written with the noun that they count.
_NOUNS = ("value", "block")


def refusal_text(refusal: RefusedAnswer) -> str:
    """Return why there is no answer."""
    nouns = {f"{noun}s": noun for noun in _NOUNS}
    numbers = {
        name: number_of(int(number), nouns[name]) if name in nouns else number
        for name, number in refusal.numbers.items()
    }
    return _TEXTS[refusal.kind].format(*refusal.names, **numbers)


@contextlib.contextmanager
def refusals_told() -> Iterator[None]:
    """Within it, a `NoAnswer` raises `UsageError` instead: in words for a user, with the fix where there is any."""
    try:
        yield
    except NoAnswer as error:
        fix = _FIXES.get(error.refusal.kind)
        raise UsageError(
            refusal_text(error.refusal), fix=None if fix is None else fix.format(*error.refusal.names)
        ) from error
