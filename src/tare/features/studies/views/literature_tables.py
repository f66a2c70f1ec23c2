"""The studies' printed figures in a terminal, as JSON and as CSV, and the check of their derived statements."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tare.features.studies.analysis.published import Checked, PublishedLine
from tare.features.studies.literature import PrintedFigure, Study
from tare.features.studies.words.published_words import COMMANDS, FIGURES, recomputed, statement_text
from tare.model import Direction
from tare.report.sentences.numbers import EMPTY

SCHEMA = "tare.literature/1"
_ARROWS = {Direction.HIGHER: " ↑", Direction.LOWER: " ↓"}
_COLUMNS = (
    "study", "metric", "platform", "value", "sd", "rsd_percent", "percent_of_baseline", "n", "unit", "better", "where",
    "words",
)  # fmt: skip


def rows(study: Study) -> Iterator[dict[str, Any]]:
    """A row per printed figure, then per statement in words only; None where something is not printed."""
    for figure in study.figure:
        for platform, value in figure.value.items():
            yield dict(
                zip(
                    _COLUMNS,
                    (
                        study.name, figure.metric, platform, value, figure.sd.get(platform), figure.rsd.get(platform),
                        study.percent(figure.metric, platform), figure.n, figure.unit,
                        figure.direction.value if figure.direction else None, figure.where,
                        "about" if figure.about else None,
                    ),
                    strict=True,
                )
            )  # fmt: skip
    for statement in study.text.told:
        empty = dict.fromkeys(_COLUMNS)
        words = statement.words if statement.of == "change" else f"{statement.of}: {statement.words}"
        columns = {
            "study": study.name,
            "metric": statement.metric,
            "platform": statement.platform,
            "where": statement.where,
        }
        yield {**empty, **columns, "words": words}


def to_csv(studies: Sequence[Study]) -> str:
    """The figures as CSV: one line per figure, and a head."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for study in studies:
        writer.writerows(rows(study))
    return out.getvalue()


def to_data(studies: Sequence[Study]) -> dict[str, Any]:
    """The data of ``tare literature --json``: the studies' files with all fields."""
    return {"schema": SCHEMA, "studies": [study.model_dump(mode="json", exclude_defaults=True) for study in studies]}


def overview(studies: Sequence[Study]) -> Group:
    """A table of all studies, and how much is known of each."""
    table = _table("study", "what", "platforms", "figures", "in words", "slips")
    for study in studies:
        figures = sum(len(figure.value) for figure in study.figure)
        counts = (figures, len(study.text.told), len(study.slip))
        title = f"{study.source.authors}, {study.source.year}\n{study.source.title or study.source.kind}"
        table.add_row(study.name, title, str(len(study.source.platforms)), *map(str, counts))
    return Group(table, Text(COMMANDS, style="dim"))


def shown(study: Study) -> Group:
    """A study's figures by metric and platform, and its statements in words, gaps and slips."""
    source = study.source
    parts: list[RenderableType] = [
        Text(f"{study.name}: {source.authors}, {source.year}. {source.title or source.kind}", style="bold"),
    ]
    named = {name for figure in study.figure for name in figure.value}
    platforms = [name for name in source.platforms if name in named]
    if study.figure:
        table = _table("metric", *platforms, "n")
        for figure in study.figure:
            arrow = _ARROWS[figure.direction] if figure.direction else ""
            cells = [_cell(figure, platform) for platform in platforms]
            head = f"{figure.metric}{arrow}\n{figure.unit}, {figure.where}"
            table.add_row(head, *cells, EMPTY if figure.n is None else str(figure.n))
        parts.append(table)
        parts.append(Text(f"{FIGURES}\n", "dim"))
    parts += _list("In words only", [_statement(study, at) for at in range(len(study.text.told))])
    parts += _list("Not read", [f"{unread.what}: {unread.why}" for unread in study.unread])
    parts += _list("Its own slips", [_slip(study, at) for at in range(len(study.slip))])
    return Group(*parts)


def _cell(figure: PrintedFigure, platform: str) -> str:
    if platform not in figure.value:
        return EMPTY
    digits = figure.decimals
    text = f"{'~' if figure.about else ''}{_number(figure.value[platform], digits)}"
    if platform in figure.sd:
        text += f"\n± {_number(figure.sd[platform], digits)}"
    if platform in figure.rsd:
        text += f"\n(± {_number(figure.rsd[platform], 2)})"
    return text


def _statement(study: Study, at: int) -> str:
    statement = study.text.told[at]
    kind = "" if statement.of == "change" else f" ({statement.of})"
    return f"{statement.metric}{kind}, {statement.platform}: {statement.words} ({statement.where})"


def _slip(study: Study, at: int) -> str:
    slip = study.slip[at]
    if slip.kind == "words":
        return f"{slip.where}: {slip.why}"
    whose = f"{slip.metric}, {slip.platform}" if slip.platform else slip.metric
    return f"{slip.where}, {whose}: {_printed(slip.printed)} is printed, {_printed(slip.follows)} follows: {slip.why}"


def checks(results: Sequence[Checked]) -> Group:
    """Tables of the statements that do not follow from a study's own figures, and whether they are listed as slips."""
    parts: list[RenderableType] = []
    for result in results:
        wrong = [line for line in result.lines if line.wrong]
        head = recomputed(result.study, len(result.lines), len(wrong))
        parts.append(Text(head, style="bold" if result.good else "bold red"))
        if wrong:
            table = _table("where", "what", "platform", "printed", "follows", "listed")
            for line in wrong:
                listed = "no" if line in result.unlisted else "yes"
                statement = f"{line.metric}, {statement_text(line)}"
                table.add_row(
                    line.where, statement, line.platform, _printed(line.printed), _printed(line.follows), listed
                )
            parts.append(table)
        parts += [Text(f"  listed and not found: {slip.where}, {slip.metric}", "red") for slip in result.unfound]
        parts.append(Text())
    return Group(*parts)


def checks_to_data(results: Sequence[Checked]) -> dict[str, Any]:
    """The data of ``tare literature --check --json``."""
    return {"schema": "tare.literature-check/1", "studies": [_checked(result) for result in results]}


def _checked(result: Checked) -> dict[str, Any]:
    return {
        "study": result.study,
        "good": result.good,
        "statements": [_line(line, listed=line not in result.unlisted) for line in result.lines],
        "unfound": [slip.model_dump(mode="json", exclude_defaults=True) for slip in result.unfound],
    }


def _line(line: PublishedLine, *, listed: bool) -> dict[str, Any]:
    return {
        "where": line.where,
        "metric": line.metric,
        "platform": line.platform,
        "what": statement_text(line),
        "printed": line.printed,
        "follows": line.follows,
        "wrong": line.wrong,
        "listed": listed if line.wrong else None,
    }


def _printed(value: object) -> str:
    if isinstance(value, list):
        return " to ".join(_printed(end) for end in value)
    return f"{value:.10g}" if isinstance(value, int | float) else str(value)


def _number(value: float, decimals: int | None) -> str:
    return f"{value:,.10g}" if decimals is None else f"{value:,.{max(0, decimals)}f}"


def _list(title: str, lines: Sequence[str]) -> Iterator[RenderableType]:
    if lines:
        yield Text(title, style="bold")
        yield from (Text(f"  {line}") for line in lines)


def _table(first: str, *rest: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column(first, overflow="fold")
    for name in rest:
        words = name in {"what", "listed"}
        # A name may break between its words only.
        least = max(map(len, name.split()))
        table.add_column(name, justify="left" if words else "right", overflow="fold", min_width=least)
    return table
