"""`tare fleet report` in a terminal and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tare.analysis.comparisons.merged_hosts import MEAN_LEVEL, PREDICTION_LEVEL, Fleet, MergedFigure
from tare.analysis.comparisons.merged_hosts import HostGroup as FactGroup
from tare.estimates.intervals import Interval
from tare.report.sentences import fleet_words as words
from tare.safe_text import clean

SCHEMA = "tare.fleet/1"
#: Left-out files, and odd hosts, that are named; of more there is a count.
_NAMED = 10
#: Hosts without a result that have a row; of more there is a count.
_MOST_WITHOUT = 40


def render(fleet: Fleet, *, every: bool = False) -> Group:
    """Render a row a figure, odd hosts with what differs there, what is left out, and the conclusion last.

    ``every``: all metrics that were merged, and not the headlines and the figures with an odd host alone.
    """
    shown = [figure for figure in fleet.figures if every or figure.headline or figure.odd.any()]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for head in ("platform", "figure", "hosts", "mean", "95 % interval", "spread", "a new host (90 %)", "odd"):
        table.add_column(head, justify="left" if head in {"platform", "figure", "odd"} else "right", overflow="fold")
    for figure in shown:
        for cells in _rows(fleet, figure):
            table.add_row(*(Text(clean(cell)) for cell in cells), style="bold yellow" if figure.odd.any() else "")
    parts: list[RenderableType] = [Text(clean(words.heading(fleet)), style="bold"), table]
    odd = list(fleet.odd())
    parts += [Text(clean(f"Odd: {words.odd_host(fleet, place, figures)}")) for place, figures in odd[:_NAMED]]
    parts += [Text(clean(words.shared(fact))) for fact in fleet.shared()[:_NAMED]]
    parts += _without_result(fleet)
    parts += [Text(clean(f"Left out: {words.left_out(entry)}"), style="dim") for entry in fleet.left_out[:_NAMED]]
    if (more := len(fleet.left_out) - _NAMED) > 0:
        parts.append(Text(words.more_left_out(more), style="dim"))
    return Group(*parts, Text(words.METHOD, style="dim"), Text(clean(words.conclusion(fleet)), style="bold"))


def _without_result(fleet: Fleet) -> Iterator[RenderableType]:
    """Yield a table with a row for each host that has no file; nothing where every host has one."""
    if not fleet.no_result:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title=words.NO_RESULT, title_justify="left")
    for head in words.NO_RESULT_HEADS:
        table.add_column(head, overflow="fold")
    for entry in fleet.no_result[:_MOST_WITHOUT]:
        table.add_row(*(Text(clean(cell)) for cell in words.no_result(entry)), style="red")
    yield table
    if (more := len(fleet.no_result) - _MOST_WITHOUT) > 0:
        yield Text(words.more_without_result(more), style="dim")


def _rows(fleet: Fleet, figure: MergedFigure) -> Iterator[tuple[str, ...]]:
    """Return a figure's row, and below it a row a group."""
    yield (
        figure.platform, f"{figure.workload} {figure.metric}", *_numbers(figure, figure), words.odd_in(fleet, figure)
    )  # fmt: skip
    for group in figure.groups:
        yield "", f"  {words.group_name(fleet, group)}", *_numbers(group, figure), ""


def _numbers(of: MergedFigure | FactGroup, figure: MergedFigure) -> tuple[str, ...]:
    size, ends = words.mean(of.mean, figure.direction)
    return (
        str(of.n_hosts), size, ends, words.spread(of.spread), words.predicted(of.prediction, figure.direction)
    )  # fmt: skip


def to_json(fleet: Fleet) -> str:
    """Return the merge as it is, with ``schema``. Logs are of how many times worse, so that above 0 is worse."""
    data = {
        "schema": SCHEMA,
        "baseline": fleet.baseline,
        "by": fleet.by,
        "false_discovery_rate": fleet.rate,
        "mean_level": MEAN_LEVEL,
        "prediction_level": PREDICTION_LEVEL,
        "hosts": [_host(fleet, place) for place in range(len(fleet.hosts))],
        "figures": [_figure(fleet, figure) for figure in fleet.figures],
        "shared_by_odd_hosts": [asdict(fact) for fact in fleet.shared()],
        "no_result": [asdict(entry) for entry in fleet.no_result],
        "left_out": [asdict(entry) | {"text": words.left_out(entry)} for entry in fleet.left_out],
        "conclusion": words.conclusion(fleet),
    }
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


def _host(fleet: Fleet, place: int) -> dict[str, Any]:
    host = fleet.hosts[place]
    odd = place in fleet.odd_places
    return {
        "name": host.name,
        "file": host.file,
        "campaign": host.campaign,
        "created": host.created,
        "tare_version": host.tare_version,
        "facts": dict(host.facts),
        "odd": odd,
        "differs": [asdict(unlike) for unlike in fleet.unlike(place)] if odd else [],
    }


def _figure(fleet: Fleet, figure: MergedFigure) -> dict[str, Any]:
    return {
        "platform": figure.platform,
        "workload": figure.workload,
        "metric": figure.metric,
        "unit": figure.unit,
        "direction": figure.direction,
        "headline": figure.headline,
        **_estimates(figure, figure),
        "text": words.answer(fleet, figure),
        "groups": [{"value": group.value, **_estimates(group, figure)} for group in figure.groups],
        "hosts": [
            {
                "host": host.name,
                "log": _number(figure.effects[at]),
                "error": _number(figure.errors[at]),
                "percent": _number(words.percents(float(figure.effects[at]), figure.direction)),
                "value": _number(figure.values[at]),
                "n_blocks": int(figure.blocks[at]),
                "shrunk_log": _number(figure.shrunk[at]),
                "shrunk_error": _number(figure.shrunk_errors[at]),
                "deviation": _number(figure.deviations[at]),
                "p": _number(figure.p[at]),
                "odd": bool(figure.odd[at]),
            }
            for at, host in enumerate(fleet.hosts)
            if math.isfinite(figure.effects[at])
        ],
    }


def _estimates(of: MergedFigure | FactGroup, figure: MergedFigure) -> dict[str, Any]:
    size, ends = words.mean(of.mean, figure.direction)
    return {
        "n_hosts": of.n_hosts,
        "mean": _ends(of.mean),
        "spread": of.spread,
        "prediction": None if of.prediction is None else _ends(of.prediction),
        "mean_text": f"{size} ({ends})" if ends else size,
        "prediction_text": words.predicted(of.prediction, figure.direction),
    }


def _ends(interval: Interval) -> dict[str, float | None]:
    return {name: _number(getattr(interval, name)) for name in ("point", "low", "high")}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
