"""Pairwise comparisons of platforms, in a terminal and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tare.analysis.refusals import RefusedAnswer
from tare.estimates.intervals import Interval
from tare.features.compare.analysis import Compared, Test
from tare.features.compare.words import PROCEDURES, WORSE_BY
from tare.model import Direction
from tare.report.sentences.numbers import signed_range
from tare.report.sentences.refusal_words import NO_RATIOS, refusal_text
from tare.safe_text import clean

SCHEMA = "tare.compare/1"
#: A pair with a smaller p, adjusted for all pairs, is printed bold.
SURE = 0.05


def to_data(compared: Sequence[Compared]) -> dict[str, Any]:
    """For ``--json``: differences are natural logarithms of ratios, first over second."""
    return {"schema": SCHEMA, "results": [_data(comparison) for comparison in compared]}


def _data(compared: Compared) -> dict[str, Any]:
    """The comparison's fields, with sentences in place of codes."""
    data = asdict(compared)
    data["reason"] = _why(compared.reason)
    data["left_out"] = dict.fromkeys(compared.left_out, NO_RATIOS)
    for test, as_data in zip(compared.tests, data["tests"], strict=True):
        as_data |= {"overall": PROCEDURES[test.overall], "pairwise": PROCEDURES[test.pairwise]}
        as_data |= {"reason": _why(test.reason), "pairs_reason": _why(test.pairs_reason)}
    if compared.pairs is not None:
        data["pairs"]["unanswered"] = [
            {"first": pair.names[0], "second": pair.names[1], "reason": refusal_text(pair)}
            for pair in compared.pairs.unanswered
        ]
    return data


def _why(refusal: RefusedAnswer | None) -> str | None:
    return None if refusal is None else refusal_text(refusal)


def render(compared: Sequence[Compared]) -> Group:
    """A table per metric."""
    parts: list[RenderableType] = []
    for comparison in compared:
        parts.append(Text(f"{clean(comparison.workload)}: {clean(comparison.metric)}", style="bold"))
        parts += [*_metric(comparison), Text()]
    return Group(*parts)


def _metric(comparison: Compared) -> Iterator[RenderableType]:
    if comparison.reason is not None:
        yield _none(refusal_text(comparison.reason))
    elif comparison.pairs is not None:
        left_out = f", {comparison.pairs.n_left_out} more with some platforms" if comparison.pairs.n_left_out else ""
        yield Text(
            f"all pairs by {comparison.pairs.method.value} over {comparison.pairs.n_blocks} blocks{left_out}",
            style="dim",
        )
        yield _table([(p.first, p.second, p.difference, p.p) for p in comparison.pairs.pairs], comparison.direction)
        yield from (_none(refusal_text(pair)) for pair in comparison.pairs.unanswered)
    for test in comparison.tests:
        overall, pairwise = PROCEDURES[test.overall], PROCEDURES[test.pairwise]
        yield Text(f"{overall}: {_overall(test)}; pairs by {pairwise}", style="dim")
        if test.pairs_reason is None:
            yield _table([(p.first, p.second, p.difference, p.p) for p in test.pairs], comparison.direction)
        else:
            yield _none(f"{pairwise}: {refusal_text(test.pairs_reason)}")
    if comparison.reason is None:
        yield from (_none(f"{name}: {NO_RATIOS}") for name in comparison.left_out)


def _none(reason: str) -> Text:
    return Text(f"no answer: {clean(reason)}", style="yellow")


def _overall(test: Test) -> str:
    result = test.result
    if result is None:
        return f"no answer ({clean(_why(test.reason) or '')})"
    if result.df_within is None:
        return f"chi-squared {result.statistic:.2f} on {result.df_between:g}, p {_p(result.p)}"
    return f"F {result.statistic:.2f} on {result.df_between:g} and {result.df_within:.1f}, p {_p(result.p)}"


def _table(rows: Sequence[tuple[str, str, Interval | None, float]], direction: Direction) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for head in ("platform", "against", WORSE_BY, "p, adjusted"):
        table.add_column(head, justify="right" if head.startswith(("is", "p,")) else "left")
    for first, second, difference, p in rows:
        style = "bold" if p < SURE else ""
        shown = "" if difference is None else signed_range(_worse(difference, direction))
        table.add_row(clean(first), clean(second), shown, _p(p), style=style)
    return table


def _worse(logs: Interval, direction: Direction) -> Interval:
    """Return by which fraction the first is worse than the second: added to its time or cost, or lost from its rate."""
    ratios = [math.expm1(value) for value in (logs.point, logs.low, logs.high)]
    if direction is Direction.LOWER:
        return Interval(*ratios)
    return Interval(-ratios[0], -ratios[2], -ratios[1])


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
