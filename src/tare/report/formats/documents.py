"""A table for people: LaTeX with booktabs and siunitx, or Markdown. All text in it is text there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from tare.report.formats.columns import COLUMNS
from tare.report.formats.tables import CampaignTable
from tare.report.parts.escaping import latex, markdown
from tare.safe_text import clean

_EMPTY = "\N{EN DASH}"
#: Significant digits of a figure in a document.
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Span:
    """A figure with its interval, in the column's unit or in one of its own."""

    point: str
    ends: tuple[str, str] | None = None
    unit: str = ""
    sure: bool = False  # of another one than the baseline's, by more than the margin


Cell = str | float | int | bool | Span | None


@dataclass(frozen=True, slots=True)
class Document:
    """A table: ``units`` stand below the heads; ``numeric`` columns are set to the right; ``notes`` are below it.

    ``stacked``: in LaTeX each row takes two lines, with the second column below the first and intervals below their
    figures, so that it fits a column of a paper.
    """

    heads: Sequence[str]
    units: Sequence[str]
    numeric: Sequence[bool]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = field(default_factory=tuple)
    stacked: bool = False


def of_frame(frame: pl.DataFrame, table: CampaignTable) -> Document:
    """A document of a campaign's table: the rows of the frame, with the names and units of the table's columns."""
    columns = COLUMNS[table]
    numeric = [column.dtype in {pl.Int64, pl.Float64} for column in columns]
    return Document([column.name for column in columns], [column.unit for column in columns], numeric, frame.rows())


def of_any(frame: pl.DataFrame) -> Document:
    """Any frame; what is neither a number nor text is as polars writes it."""
    kinds = frame.schema
    numeric = [kind.is_numeric() for kind in kinds.values()]
    other = [name for name, kind in kinds.items() if not (kind.is_integer() or kind.is_float() or kind == pl.Boolean)]
    plain = frame.with_columns(pl.Series(name, [_shown(value) for value in frame[name]], pl.String) for name in other)
    return Document(list(kinds), ["" for _ in kinds], numeric, plain.rows())


def _shown(value: object) -> str | None:
    if isinstance(value, pl.Series):
        value = value.to_list()
    return None if value is None else str(value)


def to_latex(document: Document) -> str:
    """A ``tabular`` for a float of the author's, with what it needs and its notes as comments."""
    if document.stacked:
        return _stacked(document)
    align = "".join("r" if numeric else "l" for numeric in document.numeric)
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage{siunitx} (version 3)",
        *(f"% {' '.join(clean(note).split())}" for note in document.notes),
        r"\begingroup\sisetup{retain-explicit-plus=true}%",
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        _latex_row([latex(head) for head in document.heads]),
    ]
    if any(document.units):
        lines.append(_latex_row([f"({latex(unit)})" if unit else "" for unit in document.units]))
    lines.append(r"\midrule")
    lines += [_latex_row([_latex_cell(cell) for cell in row]) for row in document.rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}\endgroup", ""])


def _stacked(document: Document) -> str:
    """Two lines a row, and no wider than the column that it stands in."""
    numeric = [document.numeric[0], *document.numeric[2:]]
    lines = [
        r"% needs \usepackage{booktabs}, \usepackage{adjustbox} and \usepackage{siunitx} (version 3)",
        *(f"% {' '.join(clean(note).split())}" for note in document.notes),
        r"\begingroup\sisetup{retain-explicit-plus=true}\footnotesize\setlength{\tabcolsep}{3pt}%",
        r"\begin{adjustbox}{max width=\linewidth}",
        rf"\begin{{tabular}}{{@{{}}{''.join('r' if right else 'l' for right in numeric)}@{{}}}}",
        r"\toprule",
        _latex_row([latex(head) for at, head in enumerate(document.heads) if at != 1]),
        r"\midrule",
    ]
    for row in document.rows:
        lines.append(_latex_row([_latex_point(cell) for at, cell in enumerate(row) if at != 1]))
        below = [_latex_cell(row[1]), *(_latex_ends(cell) for cell in row[2:])]
        lines.append(_latex_row([rf"{{\scriptsize {text}}}" if text else "" for text in below]) + "[2pt]")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{adjustbox}\endgroup", ""])


def _latex_point(cell: Cell) -> str:
    if not isinstance(cell, Span):
        return _latex_cell(cell)
    unit = f"~{latex(cell.unit)}" if cell.unit else ""
    return rf"\num{{{cell.point}}}{unit}{'*' if cell.sure else ''}"


def _latex_ends(cell: Cell) -> str:
    if not isinstance(cell, Span) or cell.ends is None:
        return ""
    return rf"\num{{{cell.ends[0]}}} {{\ldots}} \num{{{cell.ends[1]}}}"


def to_markdown(document: Document) -> str:
    """A table as GitHub, GitLab and pandoc read it."""
    heads = [
        markdown(head) + (f" ({markdown(unit)})" if unit else "")
        for head, unit in zip(document.heads, document.units, strict=True)
    ]
    lines = [
        f"| {' | '.join(heads)} |",
        f"| {' | '.join('---:' if numeric else '---' for numeric in document.numeric)} |",
        *(f"| {' | '.join(map(_markdown_cell, row))} |" for row in document.rows),
        *(f"\n{markdown(note)}" for note in document.notes),
    ]
    return "\n".join([*lines, ""])


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: Cell) -> str:
    if isinstance(cell, Span):
        ends = rf" [\num{{{cell.ends[0]}}}, \num{{{cell.ends[1]}}}]" if cell.ends else ""
        return rf"\num{{{cell.point}}}{ends}" + (f"~{latex(cell.unit)}" if cell.unit else "")
    if isinstance(cell, bool) or cell is None or isinstance(cell, str):
        return latex(_word(cell))
    return rf"\num{{{_number(cell)}}}" if math.isfinite(cell) else latex(_number(cell))


def _markdown_cell(cell: Cell) -> str:
    if isinstance(cell, Span):
        ends = f" [{cell.ends[0]}, {cell.ends[1]}]" if cell.ends else ""
        unit = (f" {markdown(cell.unit)}" if cell.unit else "") + (r"\*" if cell.sure else "")
        return f"{cell.point}{ends}".replace("-", "\N{MINUS SIGN}") + unit
    if isinstance(cell, bool) or cell is None or isinstance(cell, str):
        return markdown(_word(cell))
    return _number(cell).replace("-", "\N{MINUS SIGN}", 1)


def _word(value: str | bool | None) -> str:
    if value is None:
        return _EMPTY
    return value if isinstance(value, str) else ("yes" if value else "no")


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    # No negative zero, and of what is large (a time, a counter) no digit less than a unit lost.
    return f"{value:.1f}" if abs(value) >= 10**_DIGITS else f"{value + 0.0:.{_DIGITS}g}"
