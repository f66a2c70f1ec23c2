"""A campaign's estimates while it runs, block by block: every block's ratios are worked out once, and kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analysis.counts import trials_of
from tare.analysis.evidence import LEAST, draws_of, reference
from tare.analysis.grid import Grid, block_ratios, harmonic, total_ratios
from tare.analysis.hidden import Hidden, hidden
from tare.analysis.intervals import t_interval
from tare.analysis.overhead import overhead, ratio
from tare.analysis.results import Counts, Description, MetricResult, NoiseFloor, PlatformResult
from tare.analysis.verdicts import (
    CPU_COST,
    EQUAL,
    Closed,
    Kind,
    LogIntervals,
    Question,
    Reason,
    Verdict,
    gate,
    judge,
    too_few,
)
from tare.analysis.widths import Known, Row
from tare.model import Arm, Design
from tare.store import CampaignRecord, MetricRecord, Store, WorkloadRecord


@dataclass(slots=True)
class _Metric:
    """What is kept of one metric, by position of the arm: a figure a block."""

    logs: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))  # log ratios to the baseline
    totals: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))  # of whole blocks' work over time
    draws: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # samples behind them
    twin: list[float] = field(default_factory=list)  # log ratios of the baseline's second arm to its first
    values: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    unfit: set[int] = field(default_factory=set)  # arms with samples that have no logarithm


class Estimates:
    """Estimates of headlines and CPU costs as they stand; `read` adds the blocks that came since.

    They are those of the report but for its checks (drift, bootstrap, contamination), which need more than
    a figure a block. A campaign of one platform after the other pairs no blocks: it has values, and no ratios.
    """

    def __init__(self) -> None:
        self._record: CampaignRecord | None = None
        self._arms: list[Arm] = []
        self._next = 0
        self._metrics: dict[tuple[str, str], _Metric] = {}

    def read(self, store: Store, end: int | None = None) -> None:
        """Take in the blocks before ``end`` that were not read yet, all of which must be whole; None: all there are."""
        if self._record is None:
            self._record, self._arms = store.record, store.record.all_arms()
        if self._record.design is Design.SEQUENTIAL:  # a block's number comes again with every arm
            self._metrics.clear()
            self.add(store.samples())
            return
        samples = store.samples(self._next, end)
        if not samples.is_empty():
            newest = samples["block"].max()
            assert isinstance(newest, int)
            self._next = newest + 1
            self.add(samples)

    def add(self, samples: pl.DataFrame) -> None:
        """Work out blocks that are new. ``samples``: as of `tare.store.Store.samples`."""
        parts = samples.partition_by("workload", "metric", as_dict=True, include_key=False)
        for workload, metric in self._wanted():
            part = parts.get((workload.name, metric.name))
            if part is not None:
                kept = self._metrics.setdefault((workload.name, metric.name), _Metric())
                kind = harmonic(metric.direction, workload.mode)
                self._add(kept, Grid.of(part, self._arms, harmonic=kind))

    def known(self) -> dict[str, Known]:
        """How wide the intervals are, by workload."""
        rows: dict[str, list[Row]] = {workload.name: [] for workload in self._read().workloads}
        for workload, metric in self._wanted():
            kept = self._metrics.get((workload.name, metric.name), _Metric())
            for logs in (*kept.logs.values(), *kept.totals.values()):
                if len(logs) >= LEAST:
                    wide = t_interval(np.array(logs), 0.95)
                    rows[workload.name].append(Row(wide.point, wide.half_width, len(logs)))
        return {name: Known(tuple(found)) for name, found in rows.items()}

    def headlines(self, trials: pl.DataFrame) -> list[MetricResult]:
        """Each workload's first metric. ``trials``: as of `tare.store.Store.trials`, to count how they ended."""
        counts = _count(trials)
        return [
            self._result(workload, metric, counts)
            for workload, metric in self._wanted()
            if metric is workload.metrics[0]
        ]

    def _read(self) -> CampaignRecord:
        assert self._record is not None, "nothing was read"
        return self._record

    def _wanted(self) -> list[tuple[WorkloadRecord, MetricRecord]]:
        return [
            (workload, metric)
            for workload in self._read().workloads
            for number, metric in enumerate(workload.metrics)
            if number == 0 or metric.name == CPU_COST
        ]

    def _add(self, kept: _Metric, grid: Grid) -> None:
        record = self._read()
        kept.unfit |= {at for at, count in enumerate(grid.unfit) if count}
        for at in range(len(grid.arms)):
            kept.values[at] += grid.block_values(at).tolist()
        if record.design is Design.SEQUENTIAL:
            return
        base = grid.of_platform(record.baseline)
        for at, arm in enumerate(grid.arms):
            against = list(reference(grid, record.baseline, record.design))
            if kept.unfit & {at, *base}:
                kept.logs.pop(at, None)  # one sample without a logarithm, and there is no ratio at all
                kept.totals.pop(at, None)
            elif arm.platform != record.baseline:
                pairs = block_ratios(grid, at, against)
                kept.logs[at] += pairs.logs.tolist()
                kept.draws[at] += draws_of(grid, at, pairs)
                if grid.values.shape[2] > 1:  # with one round each the total is the round
                    kept.totals[at] += total_ratios(grid, at, against).logs.tolist()
        if len(base) > 1:
            kept.twin += [] if kept.unfit & set(base) else block_ratios(grid, base[1], base[:1]).logs.tolist()

    def _result(
        self, workload: WorkloadRecord, metric: MetricRecord, counts: Mapping[tuple[str, str], Counts]
    ) -> MetricResult:
        record = self._read()
        question = Question(metric.name, metric.direction, workload.margin)
        kept = self._metrics.get((workload.name, metric.name), _Metric())
        unsure = kept.unfit & {at for at, arm in enumerate(self._arms) if arm.platform == record.baseline}
        twin = None if unsure else _intervals(kept.twin)
        floor = NoiseFloor(None if twin is None else overhead(twin.wide, metric.direction), len(kept.twin))
        closed = gate(question, twin)
        platforms = []
        for name in dict.fromkeys(arm.platform for arm in self._arms):
            at = [index for index, arm in enumerate(self._arms) if arm.platform == name]
            values = np.array([value for index in at for value in kept.values[index]])
            count = counts.get((workload.name, name), Counts())
            if name == record.baseline:
                verdict = Verdict(Kind.BASELINE, Reason.BASELINE)
                platforms.append(PlatformResult(name, values.size, 0, count, _describe(values), verdict=verdict))
            else:
                looks = kept.logs.get(at[0], []), kept.totals.get(at[0], [])
                trials = trials_of(count, counts.get((workload.name, record.baseline), Counts()))
                unseen = hidden(kept.draws[at[0]], len(looks[0]), trials)
                platforms.append(_platform(name, question, looks, unseen, _describe(values), count, floor, closed))
        return MetricResult(
            workload.name, metric.name, metric.unit, metric.direction, workload.margin, floor, tuple(platforms)
        )


def _platform(
    name: str,
    question: Question,
    looks: tuple[list[float], list[float]],
    unseen: Hidden,
    described: Description,
    counts: Counts,
    floor: NoiseFloor,
    closed: Closed | None,
) -> PlatformResult:
    logs, totals = looks
    seen = _intervals(logs)
    empty = PlatformResult(name, len(logs), 0, counts, described)
    if seen is None:
        return replace(empty, verdict=too_few(len(logs), None)) if described.n else empty
    verdict = judge(question, seen, _intervals(totals), unseen)
    if closed is not None:
        verdict = closed.verdict(verdict.seen)
    elif floor.interval is not None and floor.interval.half_width > question.margin:
        wide = {"half_width": floor.interval.half_width}
        if verdict.kind in EQUAL:
            verdict = replace(verdict, kind=Kind.INCONCLUSIVE, reason=Reason.WIDE_FLOOR, numbers=wide)
    over = overhead(seen.wide, question.direction)
    return replace(empty, ratio=ratio(seen.wide), overhead=over, verdict=verdict)


def _intervals(logs: list[float]) -> LogIntervals | None:
    if len(logs) < LEAST:
        return None
    return LogIntervals(*(t_interval(np.array(logs), level) for level in (0.95, 0.90, 0.99)))


def _describe(values: NDArray[np.float64]) -> Description:
    if not values.size or not np.isfinite(values).all():
        return Description(int(values.size), None, None, None)
    return Description(int(values.size), float(values.mean()), None, float(np.median(values)))


def _count(trials: pl.DataFrame) -> dict[tuple[str, str], Counts]:
    """Trials by workload and platform."""
    rows = trials.group_by("workload", "platform").agg(
        *((pl.col("status") == status).sum().alias(status) for status in ("ok", "failed", "unsupported"))
    )
    return {(str(workload), str(platform)): Counts(*numbers) for workload, platform, *numbers in rows.iter_rows()}
