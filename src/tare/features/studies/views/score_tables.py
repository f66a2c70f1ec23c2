"""Scores of a campaign by the methods of the studies, in a terminal and as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tare.features.studies.analysis.profile import EvaluationProfile
from tare.features.studies.analysis.scores import PercentOfBaseline
from tare.features.studies.analysis.sheet import Sheet
from tare.features.studies.words import score_words as scores
from tare.model import Direction
from tare.report.model import ResultReport
from tare.report.sentences.numbers import EMPTY
from tare.safe_text import clean

SCHEMA = "tare.score/1"


def doubt_of(results: Sequence[ResultReport]) -> dict[tuple[str, str, str], tuple[float, float]]:
    """The ends of the figures' intervals, as shares of the figures: of the estimate that all tables show."""
    doubt = {}
    for result in results:
        for platform in result.platforms:
            effect = platform.effect
            if effect is None or effect.low is None or effect.high is None or min(effect.low, effect.times) <= 0:
                continue
            low, high = effect.low / effect.times, effect.high / effect.times
            if not 0 < low <= high < math.inf:  # of figures that are as far apart as numbers can be
                continue
            ends = (low, high) if result.direction is Direction.LOWER else (1 / high, 1 / low)
            doubt[result.workload, result.metric, platform.platform] = ends
    return doubt


def to_data(sheet: Sheet, profile: EvaluationProfile) -> dict[str, Any]:
    """The data of ``tare score --json``."""
    return {"schema": SCHEMA, "profile": profile.title, **asdict(sheet)}


def render(sheet: Sheet, profile: EvaluationProfile, baseline: str) -> Group:
    """Tables of points, of per cent of the baseline, and of standardised scores."""
    parts: list[RenderableType] = [Text(f"Points by the profile {clean(profile.title)!r}", style="bold")]
    parts.append(_points(sheet, profile))
    features = [feature.name for feature in profile.feature]
    lacking = [name for name in features if all(row.points[name] is None for row in sheet.points)]
    if lacking:
        parts.append(Text(scores.not_measured(lacking), style="dim"))
    parts += [
        "",
        Text(scores.percents(clean(baseline)), style="bold"),
    ]
    parts += [_percents(sheet), "", Text(scores.STANDARDISED, style="bold"), _scores(sheet)]
    if sheet.trial_counts:
        parts += ["", Text(scores.trial_counts(clean(baseline)), style="bold"), _trial_counts(sheet)]
    return Group(*parts)


def _points(sheet: Sheet, profile: EvaluationProfile) -> Table:
    """Points, a row for each feature that was measured, then their sums; a column for each platform."""
    table = _table("feature", [row.platform for row in sheet.points])
    for feature in profile.feature:
        reached = [row.points[feature.name] for row in sheet.points]
        if any(point is not None for point in reached):
            ranges = [row.ranges.get(feature.name) for row in sheet.points]
            cells = [
                EMPTY if point is None else scores.points_text(point, within)
                for point, within in zip(reached, ranges, strict=True)
            ]
            table.add_row(scores.feature(clean(feature.name), len(feature.thresholds), clean(feature.priority)), *cells)
    table.add_section()
    for name, weight in profile.priorities.items():
        head = name if weight == 1 else f"{name} x {weight:g}"
        table.add_row(clean(head), *(str(row.sums[name]) for row in sheet.points))
    table.add_row("total", *(scores.total_text(row.total, row.attainable, row.total_range) for row in sheet.points))
    if any(weight != 1 for weight in profile.priorities.values()):
        table.add_row("weighted", *(f"{row.weighted:g}" for row in sheet.points))
    if any(row.unacceptable for row in sheet.points):
        table.add_row("not acceptable for", *(clean(", ".join(row.unacceptable)) for row in sheet.points))
    return table


def _percents(sheet: Sheet) -> Table:
    def shown(cell: PercentOfBaseline) -> str:
        return f"{cell.percent:,.1f}" + ("" if cell.rsd is None else f" ±{cell.rsd:.1f}")

    return _by_workload(sheet.percents, shown)


def _scores(sheet: Sheet) -> Table:
    table = _by_workload(sheet.standardised, lambda share: f"{share:.3f}")
    names = _names(sheet.standardised)
    table.add_section()
    table.add_row("row score", *(f"{sheet.rows[name]:.3f}" if name in sheet.rows else EMPTY for name in names))
    return table


def _trial_counts(sheet: Sheet) -> Table:
    return _by_workload(sheet.trial_counts, lambda count: f"{count.trials:,} ({count.overhead_percent:.1f} %)")


_Cell = TypeVar("_Cell")


def _by_workload(rows: Mapping[str, Mapping[str, _Cell]], shown: Callable[[_Cell], str]) -> Table:
    """A row for each workload, a column for each platform."""
    names = _names(rows)
    table = _table("workload", names)
    for workload, row in rows.items():
        table.add_row(clean(workload), *(shown(row[name]) if name in row else EMPTY for name in names))
    return table


def _names(rows: Mapping[str, Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows.values() for name in row))


def _table(first: str, platforms: Iterable[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column(first, no_wrap=True)
    for name in platforms:
        table.add_column(clean(name), justify="right", overflow="fold")
    return table
