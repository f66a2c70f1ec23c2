"""Texts of comparisons: why there is none, names of tests, and why a spread could not be split into parts."""

from __future__ import annotations

from collections.abc import Mapping

from tare.analysis.comparisons.compare import NoRatios, Procedure
from tare.analysis.comparisons.many import Gap, Unanswered
from tare.analysis.trust.steadiness import NoParts
from tare.report.sentences.verdicts import UNFIT

PROCEDURES: Mapping[Procedure, str] = {
    Procedure.WELCH: "Welch's analysis of variance",
    Procedure.GAMES_HOWELL: "Games-Howell",
    Procedure.ANOVA: "analysis of variance",
    Procedure.TUKEY: "Tukey's HSD",
    Procedure.KRUSKAL_WALLIS: "Kruskal-Wallis",
    Procedure.RANK_SUMS: "rank sums with Holm",
}
NO_RATIOS = f"samples are {UNFIT}, and have no ratio"
_NO_PARTS: Mapping[NoParts, str] = {
    NoParts.UNFIT: "it has samples without a logarithm (zero, negative, or none)",
    NoParts.ONE_ROUND: "it has one figure a block",
}


def unanswered_text(pair: Unanswered) -> str:
    """Why a pair could not be compared."""
    both = f"{pair.first} and {pair.second}"
    if pair.gap is Gap.TOO_FEW_BLOCKS:
        count = f"{pair.n_blocks} {'block' if pair.n_blocks == 1 else 'blocks'}"
        return f"{both} both have a value in {count}, at least 2 are needed"
    return f"{both} differ by the same in every block: no noise to compare with"


def no_comparison(reason: NoRatios | Unanswered | str) -> str:
    """Why platforms could not be compared in a metric; a text is an error's message."""
    if isinstance(reason, NoRatios):
        return f"{reason.platform}: {NO_RATIOS}"
    return unanswered_text(reason) if isinstance(reason, Unanswered) else reason


def no_parts(reason: NoParts | str) -> str:
    """Why a spread could not be split into starts and rounds; a text is an error's message."""
    return _NO_PARTS[reason] if isinstance(reason, NoParts) else reason
