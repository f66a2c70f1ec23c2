"""Names of the tests that compare groups."""

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
