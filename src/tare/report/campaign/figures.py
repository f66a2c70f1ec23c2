"""The page's figures as plain data for its script: intervals against the baseline, samples, start-up curves, A/A."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analysis import CPU_COST
from tare.analysis.comparisons.verdicts import Kind
from tare.report.campaign.cells import cell, look
from tare.report.campaign.model import PlatformReport, Report, ResultReport
from tare.report.sentences.numbers import percent

#: Most points of one plot; more are thinned out evenly, and the plot says so.
POINT_LIMIT = 5_000
#: A platform with a larger overhead, in per cent, does not stretch the axis: an arrow stands for it.
_FAR_PERCENT = 50.0

Figure = dict[str, Any]


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
        "log": _wants_log(strips),
    }


def start_figure(report: Report, results: Sequence[ResultReport], samples: Mapping[str, pl.DataFrame]) -> Figure:
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
                curves.append({"name": platform.platform, "x": _rounded(values), "y": _rounded(shares)})
        panels.append({"label": f"{result.metric_title}, {result.unit}", "curves": curves})
    return {"kind": "start", "panels": panels, "baseline": report.baseline}


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


def note_of(figure: Figure) -> str:
    """The note below a plot: whether all samples are shown."""
    if figure["shown"] < figure["total"]:
        return (
            f"{figure['shown']:,} of {figure['total']:,} samples shown, evenly chosen; all of them are in the raw data."
        )
    return f"All {figure['total']:,} samples shown."


def _interval(result: ResultReport, platform: PlatformReport) -> Figure:
    shown = cell(result, platform)
    return {
        "name": platform.platform,
        "kind": look(platform),
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
                    "kind": look(platform),
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


def _wants_log(strips: Sequence[Figure]) -> bool:
    medians = [strip["median"] for strip in strips if strip["median"] is not None]
    return bool(medians) and min(medians) > 0 and max(medians) / min(medians) > 8


def summary(report: Report, platform: str) -> list[tuple[str, str]]:
    """Verdicts of the headline metrics on a platform: pairs of look and sentence, the worst first."""
    lines: list[tuple[float, str, str]] = []
    equal: list[str] = []
    for result in report.headlines():
        for entry in result.platforms:
            if entry.platform != platform:
                continue
            if entry.verdict is Kind.EQUIVALENT:
                equal.append(f"{result.workload} (within {percent(result.margin_percent / 100)})")
            else:
                lines.append((-(entry.op_percent or 0.0), look(entry), f"{result.workload}: {entry.verdict_text}"))
    verdicts = [(kind, text) for _, kind, text in sorted(lines)]
    return [*verdicts, (Kind.EQUIVALENT, f"equivalent in {', '.join(equal)}")] if equal else verdicts
