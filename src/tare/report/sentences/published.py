"""Texts of the statements of a study that are computed again."""

from __future__ import annotations

from collections.abc import Mapping

from tare.analysis.studies.published import Line, Statement

_STATEMENTS: Mapping[Statement, str] = {
    Statement.CHANGE: "change",
    Statement.DEVIATION: "relative deviation at most",
    Statement.SCORE: "score",
    Statement.SUM: "sum",
    Statement.P: "p below",
    Statement.DEGREES: "degrees of freedom",
}


def statement_text(line: Line) -> str:
    """The kind of statement as text."""
    if line.what is Statement.AGAIN:
        return f"{line.of} again"
    return line.of if line.what is Statement.DERIVED else _STATEMENTS[line.what]
