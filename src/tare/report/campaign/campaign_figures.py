"""The page's figures as data, drawn by `drawings`: intervals against the baseline, samples, start-up curves, A/A."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analysis import CPU_COST
from tare.model import Direction
from tare.report.campaign.cells import cell
from tare.report.model import PlatformReport, Report, ResultReport
from tare.report.model.result_models import NoiseFloorReport
from tare.report.sentences.page_words import START_PARTS
from tare.report.sentences.scale import overheads
from tare.report.sentences.shown import ShownFigure
from tare.report.sentences.signs import Sign, sign_of

#: Most points of one plot; more are thinned out evenly, and the plot says so.
POINT_LIMIT = 3_000
#: A platform with a larger overhead, in per cent, does not stretch the axis: an arrow stands for it.
_FAR_PERCENT = 50.0


@dataclass(frozen=True, slots=True)
class Percents:
    """A figure in per cent with its 95 % interval, which may be unknown."""

    point: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class PlatformInterval:
    """A platform's overhead in the row with its samples; ``text``: in its place where the axis does not reach it."""

    row: int
    name: str
    sign: Sign
    overhead: Percents
    text: str
    hover: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The samples of an arm; None, drawn as a gap, for what is not finite."""

    name: str
    sign: Sign
    values: list[float | None]
    median: float | None


@dataclass(frozen=True, slots=True)
class MetricFigure:
    """Intervals against the baseline beside every sample of one metric: a row a strip.

    ``floor``: the row of the second baseline arm and the A/A interval. ``limit``: half the range of the axis in per
    cent. ``total``: of samples, of which the strips may have fewer.
    """

    label: str
    better: Direction
    margin: float
    baseline: str
    floor: tuple[int, Percents] | None
    limit: float
    intervals: list[PlatformInterval]
    strips: list[Strip]
    total: int
    log: bool

    @property
    def rows(self) -> list[str]:
        """The names of the arms."""
        return [strip.name for strip in self.strips]

    @property
    def shown(self) -> int:
        """The number of samples in the strips."""
        return sum(len(strip.values) for strip in self.strips)


@dataclass(frozen=True, slots=True)
class StepCurve:
    """The distribution of a platform's starts: the share that was done by each time."""

    name: str
    times: list[float]
    shares: list[float]


@dataclass(frozen=True, slots=True)
class Panel:
    """The curves of one metric of a start."""

    label: str
    curves: list[StepCurve]


@dataclass(frozen=True, slots=True)
class StartBar:
    """A platform's means: of the parts, and of its first mark."""

    name: str
    parts: list[float]
    mark: float | None
    end: float


@dataclass(frozen=True, slots=True)
class StartBars:
    """Means of a start's parts by platform; ``mark``: the name of the first mark."""

    parts: list[str]
    rows: list[StartBar]
    unit: str
    mark: str


@dataclass(frozen=True, slots=True)
class StartFigure:
    """The parts of a start; ``order``: of the platforms, which gives the curves their colours."""

    panels: list[Panel]
    order: list[str]
    bars: StartBars


@dataclass(frozen=True, slots=True)
class FloorRow:
    """The A/A interval of a metric; ``silent``: it holds zero."""

    name: str
    interval: Percents
    margin: float
    silent: bool


@dataclass(frozen=True, slots=True)
class FloorFigure:
    """The A/A interval of every metric, with the margin that it must stay inside."""

    rows: list[FloorRow]
    baseline: str


def metric_figure(report: Report, result: ResultReport, samples: pl.DataFrame) -> MetricFigure:
    """Intervals against the baseline beside every sample of one metric."""
    platforms = [platform for platform in result.platforms if platform.platform != report.baseline]
    strips = _strips(result, samples)
    rows = [strip.name for strip in strips]
    return MetricFigure(
        label=f"{result.metric_title}, {result.unit}",
        better=result.direction,
        margin=result.margin_percent,
        baseline=report.baseline,
        floor=_floor(result, rows),
        limit=_limit(result, platforms),
        intervals=[_interval(result, platform, rows.index(platform.platform)) for platform in platforms],
        strips=strips,
        total=samples.height,
        log=wants_log([strip.median for strip in strips]),
    )


def start_figure(results: Sequence[ResultReport], samples: Mapping[str, pl.DataFrame]) -> StartFigure:
    """Empirical distributions of a start-up metric, one step curve per platform; the baseline's arms together."""
    panels = []
    for result in results:
        frame = samples[result.metric]
        curves = []
        for platform in result.platforms:
            values = np.sort(frame.filter(pl.col("platform") == platform.platform)["value"].to_numpy())
            values = values[np.isfinite(values)]
            if values.size:
                shares = np.arange(1, values.size + 1) / values.size
                curves.append(StepCurve(platform.platform, _short(values), _short(shares)))
        if curves:
            panels.append(Panel(f"{result.metric_title}, {result.unit}", curves))
    order = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    return StartFigure(panels, order, start_bars(results))


def start_bars(results: Sequence[ResultReport]) -> StartBars:
    """Means of a start's parts by platform, one after the other, with its first mark; without parts the mark alone."""
    by_name = {result.metric: result for result in results}
    parts = [name for name in START_PARTS if name in by_name]
    first = results[0]
    rows = []
    for name in [platform.platform for platform in first.platforms]:
        means = [_mean(by_name[part], name) or 0.0 for part in parts]
        mark = _mean(first, name)
        end = max(sum(means), mark or 0.0)
        if end:
            rows.append(StartBar(name, means, mark, end))
    return StartBars([START_PARTS[part] for part in parts], rows, first.unit, first.metric_title)


def _mean(result: ResultReport, platform: str) -> float | None:
    return next((figures.mean for figures in result.platforms if figures.platform == platform), None)


def floor_figure(report: Report) -> FloorFigure:
    """The A/A interval of every metric, with the margin that it must stay inside."""
    rows = []
    for result in report.results:
        floor = result.noise_floor
        if floor is not None and floor.point_percent is not None:
            name = f"{result.workload} {'CPU' if result.metric == CPU_COST else result.metric}"
            rows.append(FloorRow(name, _percents(floor), result.margin_percent, not floor.excludes_zero))
    return FloorFigure(rows, report.baseline)


def _percents(floor: NoiseFloorReport) -> Percents:
    return Percents(floor.point_percent, floor.low_percent, floor.high_percent)


def _interval(result: ResultReport, platform: PlatformReport, row: int) -> PlatformInterval:
    overhead = _shown(result, platform)
    text = cell(result, platform).in_line
    return PlatformInterval(row, platform.platform, sign_of(platform), overhead, text, platform.verdict_text)


def _shown(result: ResultReport, platform: PlatformReport) -> Percents:
    """The overhead that tables print, in per cent: of the estimate that the verdict is of."""
    times = ShownFigure.of(result, platform).times
    if times is None:
        return Percents(None, None, None)
    over = overheads(times, result.direction)
    known = platform.effect is not None and platform.effect.level is not None
    return Percents(100 * over.point, 100 * over.low if known else None, 100 * over.high if known else None)


def _floor(result: ResultReport, rows: Sequence[str]) -> tuple[int, Percents] | None:
    """The row of the second baseline arm, and the A/A interval."""
    floor, name = result.noise_floor, f"{result.platforms[0].platform}#2"
    if floor is None or floor.point_percent is None or name not in rows:
        return None
    return rows.index(name), _percents(floor)


def _limit(result: ResultReport, platforms: Sequence[PlatformReport]) -> float:
    """Half the range of the axis in per cent: covers the margin and all intervals but those beyond `_FAR_PERCENT`."""
    near = [2.0 * result.margin_percent]
    for platform in platforms:
        shown = _shown(result, platform)
        if shown.point is not None and abs(shown.point) < _FAR_PERCENT:
            near += [abs(shown.low or 0.0), abs(shown.high or 0.0)]
    if result.noise_floor is not None:
        near += [abs(result.noise_floor.low_percent or 0.0), abs(result.noise_floor.high_percent or 0.0)]
    return 1.15 * min(max(near), 2 * _FAR_PERCENT)


def _strips(result: ResultReport, samples: pl.DataFrame) -> list[Strip]:
    """Samples by arm, thinned out evenly above `POINT_LIMIT`; an arm without samples has an empty row."""
    keep = max(1, -(-samples.height // POINT_LIMIT))
    strips = []
    for platform in result.platforms:
        for replica, part in _by_replica(samples.filter(pl.col("platform") == platform.platform)):
            thin = part.gather_every(keep)
            name = platform.platform if replica == 0 else f"{platform.platform}#{replica + 1}"
            values = _rounded(thin["value"].to_numpy())
            strips.append(Strip(name, sign_of(platform), values, _median(part["value"])))
    return strips


def _by_replica(samples: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
    replicas = sorted(samples["replica"].unique().to_list()) or [0]
    return [(replica, samples.filter(pl.col("replica") == replica)) for replica in replicas]


def _median(values: pl.Series) -> float | None:
    median = values.median()
    return median if isinstance(median, float) and np.isfinite(median) else None


def _rounded(values: NDArray[np.float64]) -> list[float | None]:
    """Values in six significant digits, more than a screen shows; None, drawn as a gap, for what is not finite."""
    return [value if np.isfinite(value) else None for value in _short(values)]


def _short(values: NDArray[np.float64]) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]


def wants_log(medians: Sequence[object]) -> bool:
    """Return True if arms are too far apart for a linear axis."""
    numbers = [median for median in medians if isinstance(median, float)]
    return bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) > 8
