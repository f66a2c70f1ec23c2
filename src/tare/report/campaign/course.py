"""The course of a campaign: every sample of a metric by start and round, and the host's state beneath the trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analysis.quality.contamination import LIMITS, Disturbance
from tare.report.campaign.campaign_figures import POINT_LIMIT, wants_log
from tare.report.model import ResultReport, SegmentReport
from tare.report.parts.svg import Axis, Drawing, axis_over, draw_axis, plain, row_labels
from tare.report.sentences import captions
from tare.report.sentences.captions import LANES, samples_by_block
from tare.report.sentences.numbers import span

_WIDTH = 1060.0
_ARM = 40
_LANE = 56
_AXIS = 26
#: Blocks up to which each has a line and a number; of more, every second, third ...
_BLOCKS = 30
#: Windows of the telemetry side by side; more are put together, by their mean.
_WINDOWS = 500
#: More spans of trials than this are drawn as whole blocks.
_SPANS = 1_500
#: The least that a lane's axis holds.
_MIN_AXIS: Mapping[Disturbance, float] = {
    Disturbance.STEAL: 0.05,
    Disturbance.FOREIGN_CPU: 0.10,
    Disturbance.SIBLING: 0.10,
    Disturbance.MEMORY_PRESSURE: 0.02,
    Disturbance.SWAP: 512.0,
}
#: These lanes are drawn even where nothing happened.
_ALWAYS = (Disturbance.STEAL, Disturbance.FOREIGN_CPU)

Floats = NDArray[np.float64]


def course(result: ResultReport, samples: pl.DataFrame) -> Drawing | None:
    """Every sample of a metric: a row an arm, blocks (starts) from left to right, rounds within; None without samples.

    ``samples``: those of the metric, as `tare.store.Store.samples` has them.
    """
    finite = samples.filter(pl.col("value").is_finite()).sort("block", "round")
    if finite.is_empty():
        return None
    arms = _arms(result, finite)
    blocks = sorted(finite["block"].unique().to_list())
    rounds = int(finite["round"].max() or 0) + 1  # type: ignore[arg-type]  # whole numbers, says the store
    height = 22 + _ARM * len(arms) + _AXIS
    drawing = Drawing(_WIDTH, height, captions.course_label(result.metric_title, result.unit))
    left = row_labels(drawing, [name for name, _ in arms], 22, _ARM)
    values = finite["value"].to_list()
    drawing.text(left, 10, samples_by_block(result.unit, min(values), max(values)), "soft")
    across = Axis(0, len(blocks), left, _WIDTH - 12)
    step = -(-len(blocks) // _BLOCKS)
    for at in range(0, len(blocks), step):
        drawing.line(across.at(at), 22, across.at(at), height - _AXIS, "grid")
        drawing.text(across.at(at + 0.5), height - _AXIS + 12, str(blocks[at] + 1), "soft", "middle")
    places = pl.DataFrame(
        {"block": blocks, "place": range(len(blocks))}, schema_overrides={"block": finite["block"].dtype}
    )
    log = wants_log([part["value"].median() for _, part in arms])
    keep = max(1, -(-finite.height // POINT_LIMIT))
    levels = len(arms) * len(blocks) <= POINT_LIMIT
    for row, (name, part) in enumerate(arms):
        top = 22 + _ARM * row
        up = axis_over(values, top + _ARM - 4, top + 4, log=log)
        drawing.line(left, top + _ARM, _WIDTH - 12, top + _ARM, "grid")
        placed = part.join(places, on="block", maintain_order="left")
        _arm(drawing, name, placed, (across, up, rounds), keep)
        if levels:
            _levels(drawing, name, placed, across, up)
    return drawing


def _arms(result: ResultReport, samples: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    arms = []
    for platform in result.platforms:
        platform_samples = samples.filter(pl.col("platform") == platform.platform)
        for replica in sorted(platform_samples["replica"].unique().to_list()):
            name = platform.platform if replica == 0 else f"{platform.platform}#{replica + 1}"
            arms.append((name, platform_samples.filter(pl.col("replica") == replica)))
    return arms


def _arm(drawing: Drawing, name: str, part: pl.DataFrame, axes: tuple[Axis, Axis, int], keep: int) -> None:
    across, up, rounds = axes
    thin = part.gather_every(keep).select("place", "round", "value")
    points = "".join(
        f"M{across.at(place + (number + 0.5) / rounds):.1f} {up.at(value):.1f}h0"
        for place, number, value in thin.iter_rows()
    )
    drawing.add("path", d=points, class_="points order", title=name)


def _levels(drawing: Drawing, name: str, part: pl.DataFrame, across: Axis, up: Axis) -> None:
    """The median of each block."""
    medians = part.group_by("place", maintain_order=True).agg(pl.col("value").median())
    lines = "".join(
        f"M{across.at(place + 0.06):.1f} {up.at(median):.1f}H{across.at(place + 0.94):.1f}"
        for place, median in medians.iter_rows()
    )
    drawing.add("path", d=lines, class_="level", title=captions.block_medians(name))


@dataclass(frozen=True, slots=True)
class _Lane:
    """A row of the telemetry: what it shows, its values by window (NaN where unknown), and the limit of marking."""

    label: str
    values: Floats
    top: float
    limit: float
    percent: bool


def telemetry(windows: pl.DataFrame, trials: pl.DataFrame, segments: Sequence[SegmentReport]) -> Drawing | None:
    """Return what the host did meanwhile, a lane each, and beneath it when which workload ran; None without telemetry.

    ``windows``: `tare.analysis.quality.contamination.windows`; ``trials``: `tare.store.Store.trials`. Time that lay
    between the segments is left out.
    """
    if windows.is_empty():
        return None
    work = _Work.of(segments, windows)
    binned = _binned(windows, work)
    lanes = list(_lanes(binned))
    bottom = 14 + _LANE * len(lanes)
    drawing = Drawing(_WIDTH, bottom + 26 + _AXIS, captions.HOST_MEANWHILE)
    axis = Axis(0, work.total, 46, _WIDTH - 12)
    draw_axis(drawing, axis, 14, bottom + 22, lambda value: span(value) if value else "0")
    edges = [axis.at(edge) for edge in binned["edge"].to_list()]
    for at, lane in enumerate(lanes):
        _draw_lane(drawing, lane, edges, 14 + _LANE * at)
    _draw_trials(drawing, trials, work, axis, bottom + 4)
    return drawing


@dataclass(frozen=True, slots=True)
class _Work:
    """Seconds of work by UNIX time: pauses take none. ``at``, ``seconds``: the edges of the segments."""

    at: Floats
    seconds: Floats

    @classmethod
    def of(cls, segments: Sequence[SegmentReport], windows: pl.DataFrame) -> _Work:
        first, last = float(windows["begin"].min()), float(windows["end"].max())  # type: ignore[arg-type]
        intervals = sorted((segment.began, segment.ended) for segment in segments if segment.ended > segment.began)
        edges = np.array(intervals or [(first, last)]).ravel()
        worked = np.diff(edges)
        worked[1::2] = 0.0
        return cls(np.maximum.accumulate(edges), np.concatenate([[0.0], np.cumsum(np.maximum(worked, 0.0))]))

    @property
    def total(self) -> float:
        return float(self.seconds[-1])

    def since(self, at: Floats) -> Floats:
        return np.interp(at, self.at, self.seconds)


def _binned(windows: pl.DataFrame, work: _Work) -> pl.DataFrame:
    """Columns: edge (seconds of work at the end), and a mean of each disturbance, weighted by time."""
    together = max(1, -(-windows.height // _WINDOWS))
    names = [disturbance.value for disturbance in _MIN_AXIS]
    ends = pl.Series("edge", work.since(windows["end"].to_numpy()))
    numbered = windows.with_columns(ends).with_row_index("row").with_columns(pl.col("row") // together)
    weighted = [
        ((pl.col(name) * pl.col("seconds")).sum() / pl.col("seconds").filter(pl.col(name).is_not_null()).sum()).alias(
            name
        )
        for name in names
    ]
    return numbered.group_by("row", maintain_order=True).agg(pl.col("edge").last(), *weighted)


def _lanes(binned: pl.DataFrame) -> Iterator[_Lane]:
    for disturbance, least in _MIN_AXIS.items():
        values = binned[disturbance.value].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        finite = values[np.isfinite(values)]
        happened = bool(finite.size) and bool(finite.max() > 0)
        if happened or (disturbance in _ALWAYS and finite.size):
            top = max(least, float(finite.max()))
            yield _Lane(LANES[disturbance], values, top, LIMITS[disturbance.value], disturbance is not Disturbance.SWAP)


def _draw_lane(drawing: Drawing, lane: _Lane, edges: Sequence[float], top: float) -> None:
    up = Axis(0, lane.top, top + _LANE - 6, top + 16)
    drawing.text(46, top + 6, lane.label, "soft")
    shown = f"{100 * lane.top:.3g}" if lane.percent else plain(round(lane.top))
    drawing.text(40, up.at(lane.top), shown, "soft", "end")
    drawing.text(40, up.at(0), "0", "soft", "end")
    drawing.line(46, up.at(0), _WIDTH - 12, up.at(0), "grid")
    if lane.limit <= lane.top:
        drawing.line(46, up.at(lane.limit), _WIDTH - 12, up.at(lane.limit), "limit")
    for kind, mask in (("below", lane.values <= lane.limit), ("above", lane.values > lane.limit)):
        path, begin = [], 46.0
        for end, value, shows in zip(edges, lane.values.tolist(), mask.tolist(), strict=True):
            if shows and value > 0:
                path.append(f"M{begin:.1f} {up.at(0):.1f}V{up.at(value):.1f}H{end:.1f}V{up.at(0):.1f}z")
            begin = end
        if path:
            drawing.add("path", d="".join(path), class_=f"area {kind}")


def _draw_trials(drawing: Drawing, trials: pl.DataFrame, work: _Work, axis: Axis, top: float) -> None:
    timed = trials.filter(pl.col("started").is_not_null() & pl.col("wall_ns").is_not_null())
    keys = ["block", "workload"]
    if timed.select(keys).n_unique() > _SPANS:
        keys = ["block"]
    ended = (pl.col("started") + pl.col("wall_ns") / 1e9).max().alias("end")
    spans = timed.group_by(keys, maintain_order=True).agg(pl.col("started").min().alias("begin"), ended)
    begins, ends = (work.since(spans[name].to_numpy()) for name in ("begin", "end"))
    for row, begin, end in zip(spans.iter_rows(named=True), begins.tolist(), ends.tolist(), strict=True):
        x = axis.at(begin)
        name = f"block {row['block'] + 1}" + (f", {row['workload']}" if "workload" in row else "")
        kind = f"span-{row['block'] % 2}"
        drawing.add(
            "rect",
            x=x,
            y=top,
            width=max(1.0, axis.at(end) - x),
            height=12,
            class_=kind,
            title=f"{name}: {span(end - begin)}",
        )
    drawing.text(40, top + 6, "trials", "soft", "end")
