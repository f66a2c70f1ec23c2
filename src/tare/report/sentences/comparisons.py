"""Texts of comparisons: names of tests of groups, and what a table of spread shows."""

from __future__ import annotations

from collections.abc import Mapping

from tare.analysis.comparisons.compare import Procedure

PROCEDURES: Mapping[Procedure, str] = {
    Procedure.WELCH: "Welch's analysis of variance",
    Procedure.GAMES_HOWELL: "Games-Howell",
    Procedure.ANOVA: "analysis of variance",
    Procedure.TUKEY: "Tukey's HSD",
    Procedure.KRUSKAL_WALLIS: "Kruskal-Wallis",
    Procedure.RANK_SUMS: "rank sums with Holm",
}
#: The head of a column of differences between two platforms.
WORSE_BY = "is worse by (95 %, all pairs at once)"
#: The heading of medians of single iterations.
WITHIN_TRIALS = "Within trials: medians over the blocks, by iteration"
#: What the columns of `tare spread` are.
SPREAD = (
    "Standard deviations of the ratio to the baseline: of a block; of starts, which only more blocks make up "
    "for; of rounds within a start. Best rounds: of a block, for the same time. Changes: the block or "
    "iteration from which on figures differ (E-divisive, 1 % false alarms)."
)
