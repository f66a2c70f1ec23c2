"""Texts of published studies: statements that are computed again, and how to read their figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping

from tare.features.studies.analysis.published import PublishedLine, Statement
from tare.features.studies.model import BesideReport

_STATEMENTS: Mapping[Statement, str] = {
    Statement.CHANGE: "change",
    Statement.DEVIATION: "relative deviation at most",
    Statement.SCORE: "score",
    Statement.SUM: "sum",
    Statement.P: "p below",
    Statement.DEGREES: "degrees of freedom",
}


def statement_text(line: PublishedLine) -> str:
    """The kind of statement as text."""
    if line.what is Statement.AGAIN:
        return f"{line.of} again"
    return line.of if line.what is Statement.DERIVED else _STATEMENTS[line.what]


TITLE = "Beside a study"
#: What the table of a study's figures shows.
FIGURES = "± standard deviation; (±) relative, in per cent; ~ about. ↑ higher is better, ↓ lower."
#: What can be asked of a study.
COMMANDS = (
    "tare literature STUDY shows its figures, --check computes again what it derives, and tare run --profile STUDY"
    " repeats it."
)
#: In place of a table where a campaign has nothing of what a study has.
NOTHING_MEASURED = "Nothing that the study prints was measured here on a platform of its own."


def legend(report: BesideReport, baseline: str) -> str:
    """Return what the figures of the table mean."""
    return (
        f"Per cent of the baseline's figure: theirs of {report.baseline}, ours of {baseline}. Another machine, another"
        " kernel, other versions: only the ratios mean anything. ± is the study's standard deviation over its n runs,"
        " […] our 95 % interval over n blocks; one block has none. Variability: overhead of standard deviations, in"
        " per cent; its interval needs five blocks."
    )


def recomputed(study: str, statements: int, wrong: int) -> str:
    """Return how many statements of a study were computed again."""
    return f"{study}: {statements} statements computed again, {wrong} do not follow"
