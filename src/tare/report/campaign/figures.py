"""The page's figures as data, drawn by `drawings`: intervals against the baseline, samples, start-up curves, A/A."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analysis import CPU_COST
from tare.report.campaign.cells import cell
from tare.report.model import PlatformReport, Report, ResultReport
from tare.report.parts.svg import Figure
from tare.report.sentences.signs import sign_of

#: Most points of one plot; more are thinned out evenly, and the plot says so.
POINT_LIMIT = 3_000
#: A platform with a larger overhead, in per cent, does not stretch the axis: an arrow stands for it.
_FAR_PERCENT = 50.0

#: The metrics that are parts of a start, in their order.
PARTS = ("runtime", "kernel", "userspace", "agent")


def metric_figure(report: Report, result: ResultReport, samples: pl.DataFrame) -> Figure:
    """Intervals against the baseline beside every sample of one metric."""
    platforms = [platform for platform in result.platforms if platform.platform != report.baseline]
    strips = _strips(result, samples)
    rows = [strip["name"] for strip in strips]
    return {
        "kind": "metric",
        "rows": rows,
        "label": f"{result.metric_title}, {result.unit}",
        "better": result.direction,
        "margin": result.margin_percent,
        "baseline": report.baseline,
        "floor": _floor(result, rows),
        "limit": _limit(result, platforms),
        "intervals": [{"row": rows.index(p.platform), **_interval(result, p)} for p in platforms],
        "strips": strips,
        "shown": sum(len(strip["value"]) for strip in strips),
        "total": samples.height,
        "log": wants_log([strip["median"] for strip in strips]),
    }


def start_figure(report: Report, results: Sequence[ResultReport], samples: Mapping[str, pl.DataFrame]) -> Figure:
    """Empirical distributions of a start-up metric, one step curve per platform; the baseline's arms together."""
    panels: list[Figure] = []
    for result in results:
        frame = samples[result.metric]
        curves = []
        for platform in result.platforms:
            values = np.sort(frame.filter(pl.col("platform") == platform.platform)["value"].to_numpy())
            values = values[np.isfinite(values)]
            if values.size:
                shares = np.arange(1, values.size + 1) / values.size
                curves.append({"name": platform.platform, "x": _rounded(values), "y": _rounded(shares)})
        if curves:
            panels.append({"label": f"{result.metric_title}, {result.unit}", "curves": curves})
    order = list(dict.fromkeys(str(curve["name"]) for panel in panels for curve in panel["curves"]))
    return {
        "kind": "start",
        "panels": panels,
        "baseline": report.baseline,
        "order": order,
        "bars": start_bars(results),
    }


def start_bars(results: Sequence[ResultReport]) -> Figure:
    """Means of a start's parts by platform, one after the other, with its first mark; without parts the mark alone."""
    by_name = {result.metric: result for result in results}
    parts = [name for name in PARTS if name in by_name]
    first = results[0]
    rows = []
    for name in [platform.platform for platform in first.platforms]:
        means = [_mean(by_name[part], name) or 0.0 for part in parts]
        mark = _mean(first, name)
        end = max(sum(means), mark or 0.0)
        if end:
            rows.append({"name": name, "parts": means, "mark": mark, "end": end})
    titles = [by_name[part].metric_title.rpartition(": ")[2] for part in parts]
    return {"parts": titles, "rows": rows, "unit": first.unit, "mark": first.metric_title}


def _mean(result: ResultReport, platform: str) -> float | None:
    return next((figures.mean for figures in result.platforms if figures.platform == platform), None)


def floor_figure(report: Report) -> Figure:
    """The A/A interval of every metric, with the margin that it must stay inside."""
    rows = []
    for result in report.results:
        floor = result.noise_floor
        if floor is not None and floor.point_percent is not None:
            rows.append(
                {
                    "name": f"{result.workload} {'CPU' if result.metric == CPU_COST else result.metric}",
                    "point": floor.point_percent,
                    "low": floor.low_percent,
                    "high": floor.high_percent,
                    "margin": result.margin_percent,
                    "silent": not floor.excludes_zero,
                }
            )
    return {"kind": "floor", "rows": rows, "baseline": report.baseline}


def _interval(result: ResultReport, platform: PlatformReport) -> Figure:
    shown = cell(result, platform)
    return {
        "name": platform.platform,
        "kind": sign_of(platform),
        "point": platform.op_percent,
        "low": platform.op_low_percent,
        "high": platform.op_high_percent,
        "text": shown.in_line,
        "hover": platform.verdict_text,
    }


def _floor(result: ResultReport, rows: Sequence[str]) -> Figure | None:
    """The A/A interval, in the row of the second baseline arm."""
    floor, name = result.noise_floor, f"{result.platforms[0].platform}#2"
    if floor is None or floor.point_percent is None or name not in rows:
        return None
    return {
        "row": rows.index(name),
        "point": floor.point_percent,
        "low": floor.low_percent,
        "high": floor.high_percent,
    }


def _limit(result: ResultReport, platforms: Sequence[PlatformReport]) -> float:
    """Half the range of the axis in per cent: covers the margin and all intervals but those beyond `_FAR_PERCENT`."""
    near = [2.0 * result.margin_percent]
    for platform in platforms:
        if platform.op_percent is not None and abs(platform.op_percent) < _FAR_PERCENT:
            near += [abs(platform.op_low_percent or 0.0), abs(platform.op_high_percent or 0.0)]
    if result.noise_floor is not None:
        near += [abs(result.noise_floor.low_percent or 0.0), abs(result.noise_floor.high_percent or 0.0)]
    return 1.15 * min(max(near), 2 * _FAR_PERCENT)


def _strips(result: ResultReport, samples: pl.DataFrame) -> list[Figure]:
    """Samples by arm, thinned out evenly above `POINT_LIMIT`; an arm without samples has an empty row."""
    keep = max(1, -(-samples.height // POINT_LIMIT))
    strips = []
    for platform in result.platforms:
        for replica, part in _by_replica(samples.filter(pl.col("platform") == platform.platform)):
            thin = part.gather_every(keep)
            strips.append(
                {
                    "name": platform.platform if replica == 0 else f"{platform.platform}#{replica + 1}",
                    "kind": sign_of(platform),
                    "block": thin["block"].to_list(),
                    "value": _rounded(thin["value"].to_numpy()),
                    "median": _median(part["value"]),
                }
            )
    return strips


def _by_replica(samples: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
    replicas = sorted(samples["replica"].unique().to_list()) or [0]
    return [(replica, samples.filter(pl.col("replica") == replica)) for replica in replicas]


def _median(values: pl.Series) -> float | None:
    median = values.median()
    return median if isinstance(median, float) and np.isfinite(median) else None


def _rounded(values: NDArray[np.float64]) -> list[float | None]:
    """Values in six significant digits, more than a screen shows; None, drawn as a gap, for what is not finite."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.tolist()]


def wants_log(medians: Sequence[object]) -> bool:
    """Whether arms are too far apart for a linear axis."""
    numbers = [median for median in medians if isinstance(median, float)]
    return bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) > 8
