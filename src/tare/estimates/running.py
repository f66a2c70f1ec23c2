"""Estimates of a campaign under way: each block is analysed once, and only its figures are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import polars as pl

from tare.estimates.grid import (
    Floats,
    Grid,
    Ints,
    arm_positions,
    block_ratios,
    draws_of,
    reference,
    total_ratios,
)
from tare.estimates.intervals import MIN_BLOCKS, t_interval
from tare.estimates.widths import Row, WorkloadWidths
from tare.model import Arm, Design, Status, Trial

#: A workload and one of its metrics, by name.
MetricKey = tuple[str, str]
#: Of some samples: the arm's position, the round, the value.
_Columns = tuple[Ints, Ints, Floats]


@dataclass(slots=True)
class BlockFigures:
    """The figures of one metric, by position of the arm: one for each block."""

    logs: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))  # log ratios to the baseline
    totals: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))  # of whole blocks' work over time
    draws: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # samples behind them
    twin: list[float] = field(default_factory=list)  # log ratios of the baseline's second arm to its first
    values: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    unfit: set[int] = field(default_factory=set)  # arms with samples that have no logarithm


@dataclass(frozen=True, slots=True)
class _Block:
    """The samples of a metric in a block: arrays with an element a sample."""

    block: Ints
    arm_at: Ints
    round_number: Ints
    value: Floats

    @classmethod
    def of(cls, block: int, columns: Sequence[_Columns]) -> _Block:
        arm_at, round_number, value = (np.concatenate(column) for column in zip(*columns, strict=True))
        return cls(np.full(value.size, block), arm_at, round_number, value)


class RunningEstimates:
    """Estimates as they stand; samples come as they are measured, and count once their block is closed.

    They are those of the report but for its checks (drift, bootstrap, contamination), which need more than
    a figure a block. A campaign of one platform after the other pairs no blocks: it has values, and no ratios.
    A block's figures are the same to the last bit, alone or with others: only blocks of the same rounds share an array.
    """

    def __init__(self, arms: Sequence[Arm], baseline: str, design: Design, harmonic: Mapping[MetricKey, bool]) -> None:
        """``harmonic``: the metrics that are estimated, and how their rounds make a total (`tare.estimates.grid`)."""
        self.arms = tuple(arms)
        self._position = {arm: at for at, arm in enumerate(arms)}
        self._baseline = baseline
        self._design = design
        self._harmonic = dict(harmonic)
        self._open: dict[int, dict[MetricKey, list[_Columns]]] = {}  # samples by block, until it is worked out
        self._closed: set[int] = set()
        self._figures = {key: BlockFigures() for key in harmonic}

    def add(self, trial: Trial) -> None:
        """Take in a trial's samples; none where it failed."""
        if trial.status is not Status.OK:
            return
        for key in self._harmonic:
            samples = [sample for sample in trial.samples if key == (trial.key.workload, sample.metric)]
            if samples:
                columns = (
                    np.full(len(samples), self._position[trial.key.arm], dtype=np.int64),
                    np.array([sample.round for sample in samples], dtype=np.int64),
                    np.array([sample.value for sample in samples], dtype=np.float64),
                )
                self._keep(trial.key.block, key, columns)

    def read(self, samples: pl.DataFrame) -> None:
        """Take in samples that were measured before: a frame as of `tare.store.Store.samples`."""
        placed = samples.with_columns(arm_at=arm_positions(samples, self.arms))
        parts = placed.partition_by("block", "workload", "metric", as_dict=True, include_key=False)
        for (block, workload, metric), part in parts.items():
            key = str(workload), str(metric)
            if key in self._harmonic:
                columns = part["arm_at"].to_numpy(), part["round"].to_numpy(), part["value"].to_numpy()
                self._keep(int(block), key, columns)

    def close(self, block: int) -> None:
        """Count the block from now on: it is over, or its arms that have run by now are."""
        self._closed.add(block)

    def figures(self) -> Mapping[MetricKey, BlockFigures]:
        """The figures of the closed blocks, by metric."""
        blocks = sorted(self._closed & self._open.keys())
        samples = [(block, self._open.pop(block)) for block in blocks]
        self._closed.clear()
        for key, metric_figures in self._figures.items():
            metric_blocks = [_Block.of(block, columns[key]) for block, columns in samples if key in columns]
            for _, alike in groupby(metric_blocks, key=lambda block: np.unique(block.round_number).tobytes()):
                self._add_blocks(metric_figures, _grid(self.arms, list(alike), harmonic=self._harmonic[key]))
        return self._figures

    def known(self, without: Container[str] = ()) -> dict[str, WorkloadWidths]:
        """How wide the intervals are, by workload. ``without``: platforms whose intervals are not narrowed any more."""
        counted = {at for at, arm in enumerate(self.arms) if arm.platform not in without}
        rows: dict[str, list[Row]] = {workload: [] for workload, _ in self._harmonic}
        for (workload, _), figures in self.figures().items():
            for at, logs in (*figures.logs.items(), *figures.totals.items()):
                if at in counted and len(logs) >= MIN_BLOCKS:
                    wide = t_interval(np.array(logs), 0.95)
                    rows[workload].append(Row(wide.point, wide.half_width, len(logs)))
        return {workload: WorkloadWidths(tuple(metric_rows)) for workload, metric_rows in rows.items()}

    def _keep(self, block: int, key: MetricKey, columns: _Columns) -> None:
        self._open.setdefault(block, {}).setdefault(key, []).append(columns)

    def _add_blocks(self, figures: BlockFigures, grid: Grid) -> None:
        figures.unfit |= {at for at, count in enumerate(grid.unfit) if count}
        for at in range(len(grid.arms)):
            figures.values[at] += grid.block_values(at).tolist()
        if self._design is Design.SEQUENTIAL:
            return
        base = grid.of_platform(self._baseline)
        against = reference(grid, self._baseline, self._design)
        if figures.unfit & set(base):
            figures.twin.clear()
        elif len(base) > 1:
            figures.twin += block_ratios(grid, base[1], base[:1]).logs.tolist()
        for at, arm in enumerate(grid.arms):
            if figures.unfit & {at, *base}:
                figures.logs.pop(at, None)  # one sample without a logarithm, and there is no ratio at all
                figures.totals.pop(at, None)
                figures.draws.pop(at, None)
            elif arm.platform != self._baseline:
                pairs = block_ratios(grid, at, against)
                figures.logs[at] += pairs.logs.tolist()
                figures.draws[at] += draws_of(grid, at, pairs)
                if grid.values.shape[2] > 1:  # with one round each the total is the round
                    figures.totals[at] += total_ratios(grid, at, against).logs.tolist()


def _grid(arms: Sequence[Arm], blocks: Sequence[_Block], *, harmonic: bool) -> Grid:
    names = ("arm_at", "block", "round_number", "value")
    return Grid.laid_out(
        arms, *(np.concatenate([getattr(block, name) for block in blocks]) for name in names), harmonic=harmonic
    )
