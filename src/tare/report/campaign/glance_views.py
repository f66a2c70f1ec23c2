"""The answer on one screen: a row a dimension and a column a platform, with a picture of the costs beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.analysis.answers import AnswerState
from tare.report.campaign.choose import by_cost
from tare.report.campaign.heat import Heat, heat
from tare.report.model import AnswerReport, DimensionReport, Report
from tare.report.sentences.dimensions import DIMENSIONS

#: The picture's axis in times worse: its ends, and where it has marks.
_LEAST, _MOST = 0.5, 64.0
_MARKS = (1, 2, 4, 16, 64)
#: Narrower a picture tells nothing, wider it takes the eye too far.
_NARROWEST, _WIDEST = 18, 44
#: Several platforms at one place.
_TOGETHER = "*"


@dataclass(frozen=True, slots=True)
class Glance:
    """The table, turned: ``rows`` with a cell a platform, and the picture's line, "" without a picture."""

    platforms: tuple[str, ...]
    letters: tuple[str, ...]  # of the platforms in the picture
    rows: tuple[tuple[str, tuple[str, ...], str], ...]
    axis: str

    def cells(self) -> list[str]:
        """All that is in the table."""
        return [cell for _, cells, _ in self.rows for cell in cells]


def glance(report: Report, width: int) -> Glance:
    """The table for so many characters; the picture fills what is left, or is left out."""
    shown = heat(report)
    answers = list(by_cost(report))
    letters = _letters([answer.platform for answer in answers])
    columns = [max(map(len, column)) for column in _columns(shown)]
    left = width - max(map(len, shown.columns)) - sum(columns) - 2 * (len(columns) + 2) - 1
    across = min(left, _WIDEST) if left >= _NARROWEST else 0
    return Glance(
        tuple(row.platform for row in shown.rows),
        tuple(letters[row.platform] for row in shown.rows),
        tuple(
            (name, tuple(row.cells[at].text for row in shown.rows), _line(answers, name, at, shown, letters, across))
            for at, name in enumerate(shown.columns)
        ),
        _axis(across),
    )


def _columns(shown: Heat) -> list[list[str]]:
    return [[f"{row.platform} (x)", *(cell.text for cell in row.cells)] for row in shown.rows]


def _letters(names: Sequence[str]) -> Mapping[str, str]:
    """A letter for each platform: the first of its own that no other has, else a number."""
    letters: dict[str, str] = {}
    for number, name in enumerate(names):
        free = (letter for letter in name.lower() if letter.isalpha() and letter not in letters.values())
        letters[name] = next(free, str(number % 10))
    return letters


def _place(times: float, across: int) -> int:
    """The column of so many times worse, on a logarithmic axis."""
    clipped = min(max(times, _LEAST), _MOST)
    return round((across - 1) * math.log(clipped / _LEAST) / math.log(_MOST / _LEAST))


def _line(
    answers: Sequence[AnswerReport], name: str, at: int, shown: Heat, letters: Mapping[str, str], across: int
) -> str:
    """A dimension's line of the picture: what is known of each platform from which to which, and its letter."""
    if not across:
        return ""
    line = [" "] * across
    line[_place(1, across)] = "\N{BOX DRAWINGS LIGHT VERTICAL}"
    for answer in answers:
        row = next(row for row in shown.rows if row.platform == answer.platform)
        standing = next(
            (standing for standing in answer.dimensions if _is_column(standing, name) and row.cells[at].text), None
        )
        if standing is not None and (ends := _ends(standing)) is not None:
            _draw(line, ends, letters[answer.platform], across)
    return "".join(line)


def _is_column(standing: DimensionReport, name: str) -> bool:
    return DIMENSIONS[standing.dimension] == name and standing.state not in {
        AnswerState.NONE,
        AnswerState.OPEN,
        AnswerState.LIMITED,
    }


def _ends(standing: DimensionReport) -> tuple[float, float] | None:
    """From how many times worse to how many; None where there is no ratio."""
    if standing.bound is not None:
        return standing.bound.low, standing.bound.high
    if standing.times is None:
        return None
    return standing.times_low or standing.times, standing.times_high or standing.times


def _draw(line: list[str], ends: tuple[float, float], letter: str, across: int) -> None:
    low, high = (_place(end, across) for end in ends)
    for place in range(low, high + 1):
        if line[place] == " ":
            line[place] = "\N{MIDDLE DOT}"
    middle = (low + high) // 2
    line[middle] = _TOGETHER if line[middle].isalnum() or line[middle] == _TOGETHER else letter


def _axis(across: int) -> str:
    """The axis' marks: "1", "2", "4" times worse, each where it is."""
    line = [" "] * across
    for mark in _MARKS if across else ():
        text, place = f"{mark}\N{MULTIPLICATION SIGN}", _place(mark, across)
        begin = min(place, across - len(text))
        if all(char == " " for char in line[max(begin - 1, 0) : begin + len(text)]):
            line[begin : begin + len(text)] = text
    return "".join(line)
