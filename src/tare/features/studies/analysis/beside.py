"""A campaign's results beside a study's published figures: both in per cent of their own baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tare.analysis.results import MetricResult, PlatformResult
from tare.features.studies.literature import MetricBeside, PrintedFigure, StatedInWords, Study


class Quantity(StrEnum):
    """The quantity of a study's figure and of ours, both in per cent."""

    PERCENT = "per cent of the baseline"
    VARIABILITY = "variability overhead"


class Position(StrEnum):
    """Position of a study's figure relative to our interval."""

    INSIDE = "inside"
    OPEN = "open"  # Outside, but our interval includes no difference.
    FURTHER = "further"  # Outside, on our side of the baseline and further from it.
    NEARER = "nearer"  # Outside, nearer to the baseline or on it.
    OTHER_SIDE = "other-side"
    NO_INTERVAL = "no-interval"  # We have a figure without an interval, for example from one block.
    NO_FIGURE = "no-figure"  # We have no figure.


@dataclass(frozen=True, slots=True)
class Theirs:
    """A study's figure of a metric and platform, in per cent of its baseline."""

    what: Quantity
    where: str
    low: float
    high: float  # Differs from ``low`` if the text says "between".
    sd: float | None = None
    n: int | None = None
    words: str = ""

    @property
    def point(self) -> float:
        """The middle of the figure."""
        return (self.low + self.high) / 2


@dataclass(frozen=True, slots=True)
class Ours:
    """Our figure with its 95 % interval, in per cent; None if there is none. A single block has no interval."""

    point: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class StudyRow:
    """A study's figure and ours."""

    link: MetricBeside
    study_platform: str
    platform: str
    theirs: Theirs
    ours: Ours
    n_blocks: int
    agreement: Position


def set_beside(study: Study, results: Sequence[MetricResult], baseline: str) -> list[StudyRow]:
    """Return every figure of the study that has a counterpart among these results.

    A platform is paired with the study's platform that it replaces or resembles (`literature.RunPlatform`).
    """
    kin = {name: theirs.study for theirs in study.run.platform for name in (*theirs.run, *theirs.like)}
    measured = {(result.workload, result.metric): result for result in results}
    return [
        row
        for link in study.beside
        if (result := measured.get((link.workload, link.ours))) is not None
        for platform in result.platforms
        if platform.platform != baseline and platform.platform in kin
        for row in _rows(study, link, platform, kin[platform.platform])
    ]


def _rows(study: Study, link: MetricBeside, platform: PlatformResult, name: str) -> Iterator[StudyRow]:
    for theirs in _theirs(study, link.metric, name):
        if theirs.what is Quantity.VARIABILITY:
            ours, no_difference = _variability(platform), 0.0
        else:
            ours, no_difference = _percents(platform, inverse=link.inverse), 100.0
        agreement = _agreement(theirs, ours, no_difference)
        yield StudyRow(link, name, platform.platform, theirs, ours, platform.n_blocks, agreement)


def _theirs(study: Study, metric: str, platform: str) -> Iterator[Theirs]:
    """Yield the study's figures of this metric and platform, in per cent: printed, derived, or in words."""
    for figure in study.figure:
        percent = study.percent(metric, platform) if figure.metric == metric else None
        if percent is not None:
            sd = _sd(study, figure, platform)
            yield Theirs(Quantity.PERCENT, figure.where, percent, percent, sd, figure.n)
    for derived in study.text.derived:
        if (derived.metric, derived.platform, derived.of) == (metric, platform, Quantity.VARIABILITY):
            yield Theirs(Quantity.VARIABILITY, derived.where, derived.value, derived.value)
    for statement in study.text.told:
        if (statement.metric, statement.platform) == (metric, platform) and statement.percent is not None:
            yield _stated(statement)


def _stated(statement: StatedInWords) -> Theirs:
    low, high = statement.percent if isinstance(statement.percent, list) else (statement.percent, statement.percent)
    assert low is not None
    assert high is not None
    if statement.of == "change":
        return Theirs(Quantity.PERCENT, statement.where, 100 + low, 100 + high, words=statement.words)
    return Theirs(Quantity.VARIABILITY, statement.where, low, high, words=statement.words)


def _sd(study: Study, figure: PrintedFigure, platform: str) -> float | None:
    """Return the platform's printed standard deviation in per cent of the baseline's figure."""
    percent = study.percent(figure.metric, platform)
    if platform in figure.rsd and percent is not None:
        return figure.rsd[platform] * percent / 100
    if platform in figure.sd and percent is not None:
        return percent * figure.sd[platform] / figure.value[platform]
    return None


def _percents(platform: PlatformResult, *, inverse: bool) -> Ours:
    ratio = platform.ratio
    if ratio is None:
        lone = platform.lone
        return Ours() if lone is None else Ours(100 / lone.ratio if inverse else 100 * lone.ratio)
    if inverse:
        return Ours(100 / ratio.point, 100 / ratio.high, 100 / ratio.low)
    return Ours(100 * ratio.point, 100 * ratio.low, 100 * ratio.high)


def _variability(platform: PlatformResult) -> Ours:
    point, interval = platform.variability_overhead, platform.variability
    return Ours(
        None if point is None else 100 * point,
        None if interval is None else 100 * interval.low,
        None if interval is None else 100 * interval.high,
    )


def _agreement(theirs: Theirs, ours: Ours, no_difference: float) -> Position:
    """Return the agreement. ``no_difference``: the percentage that means no difference."""
    point, low, high = ours.point, ours.low, ours.high
    if point is None:
        return Position.NO_FIGURE
    if low is None or high is None:
        return Position.NO_INTERVAL
    if theirs.low <= high and theirs.high >= low:
        return Position.INSIDE
    if low <= no_difference <= high:
        return Position.OPEN
    if (theirs.point - no_difference) * (point - no_difference) < 0:
        return Position.OTHER_SIDE
    further = abs(theirs.point - no_difference) > abs(point - no_difference)
    return Position.FURTHER if further else Position.NEARER
