"""DESMET evaluation profiles: points a feature by thresholds, and their sums by priority (Kärnä 2021, section 7)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.inputs import parse_toml, read_toml
from tare.model import Direction
from tare.records import Strict, of_a_file

FIX = "src/tare/features/studies/analysis/profile.toml is an example with every key"
_ROUNDING = 1e-12  # 0.567 / 0.81 is 0.7 but for its last bits

Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Feature(Strict):
    """One feature of a platform that is scored, and the thresholds for 1, 2, 3 ... points."""

    name: Name
    #: where tare measures it: a workload, or a curve, of which the mean over its levels counts; of several the first
    #: that a campaign has; empty in a study's own profile
    workload: str | Annotated[list[Name], Field(min_length=1)] = ""
    metric: str = ""
    priority: Name
    direction: Annotated[Direction, Field(strict=False)]
    thresholds: Annotated[list[Positive], Field(min_length=1)]
    reference: Positive | None = None  # takes the baseline's place
    least: Annotated[int, Field(ge=1)] | None = None

    @property
    def workloads(self) -> list[str]:
        """The workloads or curves that measure it, the first choice first."""
        return [self.workload] if isinstance(self.workload, str) else self.workload

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        rising = self.direction is Direction.HIGHER
        for easier, harder in itertools.pairwise(self.thresholds):
            if (harder > easier) != rising or harder == easier:
                way = "rise where higher" if rising else "fall where lower"
                raise ValueError(f"thresholds must {way} is better: {harder:g} comes after {easier:g}")
        if self.least is not None and self.least > len(self.thresholds):
            raise ValueError(f"least is {self.least}, there are only {len(self.thresholds)} points to get")
        return self


class EvaluationProfile(Strict):
    """An evaluation profile: features, their priorities with weights, and their thresholds."""

    title: Name
    priorities: Annotated[dict[Name, Positive], Field(min_length=1)]
    feature: Annotated[list[Feature], Field(min_length=1)]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [feature.name for feature in self.feature]
        for at, feature in enumerate(self.feature):
            if feature.name in names[:at]:
                raise ValueError(f"there are two features {feature.name!r}")
            if feature.priority not in self.priorities:
                priorities = ", ".join(self.priorities)
                raise ValueError(f"{feature.name}: priority {feature.priority!r} is none of [priorities]: {priorities}")
        return self


@dataclass(frozen=True, slots=True)
class ScoreSheet:
    """One platform's points. A feature without a figure has None: no points, and none that could be had."""

    platform: str
    points: dict[str, int | None]  # by feature
    sums: dict[str, int]  # by priority
    total: int
    weighted: float  # sum of points x weight of the priority
    attainable: int  # total of a platform that gets every point of the features scored here
    unacceptable: tuple[str, ...]  # features below their least
    #: by feature, the fewest and the most points within the interval of its figure; empty without intervals
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def total_range(self) -> tuple[int, int]:
        """The total with all features at their fewest points, and with all at their most."""
        if not self.ranges:
            return self.total, self.total
        fewest, most = zip(*self.ranges.values(), strict=True)
        return sum(fewest), sum(most)


def load(file: Path | None = None) -> EvaluationProfile:
    """A profile from a TOML file, or the one that comes with tare. Raises `UsageError` with one line."""
    if file is None:
        shipped = resources.files("tare.features.studies.analysis").joinpath("profile.toml")
        return parse(shipped.read_text(encoding="utf-8"), "the shipped profile")
    return checked(read_toml(file, FIX), str(file))


def parse(text: str, name: str) -> EvaluationProfile:
    """A profile from TOML text; ``name`` is for the error. Raises `UsageError` with one line."""
    return checked(parse_toml(text, name, FIX), name)


def checked(content: Mapping[str, Any], name: str) -> EvaluationProfile:
    """A profile from the parsed content of a TOML file. Raises `UsageError` with one line; ``name`` is for that."""
    return of_a_file(EvaluationProfile, content, name, FIX)


def points(feature: Feature, figure: float, baseline: float | None) -> int:
    """Return how many thresholds a figure reaches, as a share of the baseline's (or of the feature's reference).

    Raises `NoAnswer` for figures that are not positive, or where there is nothing to compare with.
    """
    base = feature.reference if feature.reference is not None else baseline
    if base is None:
        raise NoAnswer(RefusalKind.NO_BASELINE_FIGURE, feature.name)
    for kind, value in ((RefusalKind.FIGURE_NOT_POSITIVE, figure), (RefusalKind.BASELINE_FIGURE_NOT_POSITIVE, base)):
        if not (math.isfinite(value) and value > 0):
            raise NoAnswer(kind, feature.name, value=value)
    share = figure / base
    if feature.direction is Direction.HIGHER:
        return sum(share >= threshold * (1 - _ROUNDING) for threshold in feature.thresholds)
    return sum(share <= threshold * (1 + _ROUNDING) for threshold in feature.thresholds)


def evaluate(
    profile: EvaluationProfile,
    figures: Mapping[str, Mapping[str, float]],
    baseline: str,
    ends: Mapping[str, Mapping[str, tuple[float, float]]] | None = None,
) -> list[ScoreSheet]:
    """Score sheets of all platforms but the baseline, from ``figures[platform][feature]``, in the order given.

    ``ends``: of the figures' intervals, likewise; None: the figures are taken as they are.

    Raises `NoAnswer` as `points` does, and for figures of features that the profile does not have.
    """
    features = {feature.name for feature in profile.feature}
    for platform, platform_figures in figures.items():
        if strange := sorted(platform_figures.keys() - features):
            raise NoAnswer(RefusalKind.NO_SUCH_FEATURE, platform, strange[0])
    base = figures.get(baseline, {})
    return [
        _sheet(profile, name, platform_figures, base, None if ends is None else ends[name])
        for name, platform_figures in figures.items()
        if name != baseline
    ]


def _sheet(
    profile: EvaluationProfile,
    platform: str,
    figures: Mapping[str, float],
    base: Mapping[str, float],
    ends: Mapping[str, tuple[float, float]] | None,
) -> ScoreSheet:
    feature_points = {
        feature.name: points(feature, figures[feature.name], base.get(feature.name))
        if feature.name in figures
        else None
        for feature in profile.feature
    }
    sums = dict.fromkeys(profile.priorities, 0)
    attainable, unacceptable = 0, []
    for feature in profile.feature:
        scored = feature_points[feature.name]
        if scored is None:
            continue
        sums[feature.priority] += scored
        attainable += len(feature.thresholds)
        if feature.least is not None and scored < feature.least:
            unacceptable.append(feature.name)
    weighted = sum(weight * sums[name] for name, weight in profile.priorities.items())
    ranges = {} if ends is None else {
        feature.name: _range(feature, ends[feature.name], base.get(feature.name), figures[feature.name])
        for feature in profile.feature
        if feature.name in figures
    }  # fmt: skip
    return ScoreSheet(
        platform, feature_points, sums, sum(sums.values()), weighted, attainable, tuple(unacceptable), ranges
    )


def _range(feature: Feature, ends: tuple[float, float], base: float | None, figure: float) -> tuple[int, int]:
    """The fewest and the most points that a figure may have within its interval."""
    reached = sorted(points(feature, value, base) for value in (*ends, figure))
    return reached[0], reached[-1]
