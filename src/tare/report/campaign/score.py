"""Scores of a campaign by the methods of the studies, in a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tare.analysis.studies.profile import Profile
from tare.analysis.studies.sheet import Sheet
from tare.clean import clean
from tare.report.sentences import scores
from tare.report.sentences.numbers import EMPTY

SCHEMA = "tare.score/1"


def to_data(sheet: Sheet, profile: Profile) -> dict[str, Any]:
    """The data of ``tare score --json``."""
    return {"schema": SCHEMA, "profile": profile.title, **asdict(sheet)}


def render(sheet: Sheet, profile: Profile, baseline: str) -> Group:
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


def _points(sheet: Sheet, profile: Profile) -> Table:
    """Points by feature and by priority, a row per platform."""
    features = [
        feature for feature in profile.feature if any(row.points[feature.name] is not None for row in sheet.points)
    ]
    heads = [f"{feature.name}\n(of {len(feature.thresholds)}, {feature.priority})" for feature in features]
    weights = [f"{name}" if weight == 1 else f"{name} x {weight:g}" for name, weight in profile.priorities.items()]
    weighted = any(weight != 1 for weight in profile.priorities.values())
    barred = any(row.unacceptable for row in sheet.points)
    more = [*(["weighted"] if weighted else []), *(["not acceptable for"] if barred else [])]
    table = _table("platform", *heads, *weights, "total", *more)
    for row in sheet.points:
        reached = [row.points[feature.name] for feature in features]
        cells = [EMPTY if point is None else str(point) for point in reached]
        cells += [*map(str, row.sums.values()), f"{row.total} of {row.attainable}"]
        cells += [f"{row.weighted:g}"] if weighted else []
        cells += [", ".join(row.unacceptable)] if barred else []
        table.add_row(clean(row.platform), *cells)
    return table


def _percents(sheet: Sheet) -> Table:
    table = _table("platform", *sheet.percents)
    for name in _names(sheet.percents):
        cells = []
        for row in sheet.percents.values():
            cell = row.get(name)
            scatter = "" if cell is None or cell.rsd is None else f" ±{cell.rsd:.1f}"
            cells.append(EMPTY if cell is None else f"{cell.percent:,.1f}{scatter}")
        table.add_row(clean(name), *cells)
    return table


def _scores(sheet: Sheet) -> Table:
    table = _table("platform", *sheet.standardised, "row score")
    for name in _names(sheet.standardised):
        cells = [f"{row[name]:.3f}" if name in row else EMPTY for row in sheet.standardised.values()]
        table.add_row(clean(name), *cells, f"{sheet.rows[name]:.3f}" if name in sheet.rows else EMPTY)
    return table


def _trial_counts(sheet: Sheet) -> Table:
    table = _table("platform", *sheet.trial_counts)
    for name in _names(sheet.trial_counts):
        counts = [row.get(name) for row in sheet.trial_counts.values()]
        cells = [EMPTY if count is None else f"{count.trials:,} ({count.overhead_percent:.1f} %)" for count in counts]
        table.add_row(clean(name), *cells)
    return table


def _names(rows: Mapping[str, Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows.values() for name in row))


def _table(first: str, *rest: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column(first, no_wrap=True)
    for name in rest:
        table.add_column(clean(name), justify="right", overflow="fold")
    return table
