"""Texts of `tare compare`."""

from __future__ import annotations

from collections.abc import Mapping

from tare.features.compare.analysis import Procedure

#: Names of tests of groups.
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
