"""The page's score sheet: points by an evaluation profile, whose priorities and weights are changed in the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tare.features.studies.analysis.profile import EvaluationProfile, ScoreSheet


@dataclass(frozen=True, slots=True)
class ScoredFeature:
    """A feature that was measured: the priority that the profile gives it, and the most points that there are."""

    name: str
    priority: str
    most: int


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A platform: its points by feature (None where it has no figure), and their sums as the profile has them."""

    platform: str
    points: tuple[int | None, ...]
    ranges: tuple[tuple[int, int] | None, ...]  # by feature, what the intervals allow
    sums: tuple[int, ...]  # by priority
    weighted: float
    most: float  # the weighted sum of all points that it could have had
    barred: tuple[str, ...]  # features in which it has fewer points than the profile accepts
    weighted_range: tuple[float, float]  # what the intervals allow, with all figures at one end at once


@dataclass(frozen=True, slots=True)
class ScoreView:
    """The sheet as the template shows it."""

    title: str
    priorities: Mapping[str, float]
    features: tuple[ScoredFeature, ...]
    rows: tuple[ScoreRow, ...]


def score_view(points: list[ScoreSheet], profile: EvaluationProfile) -> ScoreView | None:
    """The sheet with the features that some platform has points in or could have; None without any."""
    measured = [feature for feature in profile.feature if any(row.points[feature.name] is not None for row in points)]
    if not measured:
        return None
    features = tuple(ScoredFeature(kept.name, kept.priority, len(kept.thresholds)) for kept in measured)
    return ScoreView(
        profile.title, profile.priorities, features, tuple(_row(row, features, profile.priorities) for row in points)
    )


def _row(sheet: ScoreSheet, features: tuple[ScoredFeature, ...], weights: Mapping[str, float]) -> ScoreRow:
    points = tuple(sheet.points[feature.name] for feature in features)
    scored = [feature for feature, point in zip(features, points, strict=True) if point is not None]
    most = sum(weights[feature.priority] * feature.most for feature in scored)
    ranges = tuple(sheet.ranges.get(feature.name) for feature in features)
    ends = [
        (feature, *(within or (point, point)))
        for feature, point, within in zip(features, points, ranges, strict=True)
        if point is not None
    ]
    low = sum(weights[feature.priority] * fewest for feature, fewest, _ in ends)
    high = sum(weights[feature.priority] * most_points for feature, _, most_points in ends)
    return ScoreRow(
        platform=sheet.platform,
        points=points,
        ranges=ranges,
        sums=tuple(sheet.sums[name] for name in weights),
        weighted=sheet.weighted,
        most=most,
        barred=sheet.unacceptable,
        weighted_range=(low, high),
    )
