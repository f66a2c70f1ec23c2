"""Estimates of a running campaign: each block's ratios are computed once, and kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import polars as pl

from tare.estimates.contrasts import Contrast
from tare.estimates.grid import (
    BlockRatios,
    Floats,
    Grid,
    Ints,
    arm_positions,
    block_ratios,
    draws_of,
    reference,
    step_of,
    total_ratios,
)
from tare.estimates.looks import Looks, rounding_of
from tare.estimates.moderated import FigureRow, moderated_looks
from tare.estimates.widths import WidthRow, WorkloadWidths
from tare.model import CPU_COST, Arm, Design, Status, Trial

#: A workload and one of its metrics, by name.
MetricKey = tuple[str, str]
#: Columns of samples: the arm's position, the round, the value, the weight in the block's total.
_Columns = tuple[Ints, Ints, Floats, Floats]


@dataclass(frozen=True, slots=True)
class Watched:
    """Options for reading the samples of a metric: see `Grid`."""

    harmonic: bool
    resolution: float | None = None


@dataclass(slots=True)
class _Ratios:
    """Ratios by block of one arm to the baseline's arms, or of the baseline's second arm to its first."""

    pairs: list[BlockRatios] = field(default_factory=list)
    totals: list[BlockRatios] = field(default_factory=list)
    draws: int = 0
    rounds: int = 0  # The largest number of rounds in a block.

    def add(self, grid: Grid, at: int, against: Sequence[int]) -> None:
        pairs = block_ratios(grid, at, against)
        self.pairs.append(pairs)
        self.draws += draws_of(grid, at, pairs)
        self.totals.append(total_ratios(grid, at, against))
        self.rounds = max(self.rounds, int(np.isfinite(grid.values[at]).sum(axis=1).max(initial=0)))


@dataclass(slots=True)
class BlockFigures:
    """Figures of one metric, by position of the arm."""

    ratios: dict[int, _Ratios] = field(default_factory=lambda: defaultdict(_Ratios))
    twin: _Ratios = field(default_factory=_Ratios)  # The baseline's second arm against its first.
    values: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))  # Of whole blocks.
    samples: dict[int, list[Floats]] = field(default_factory=lambda: defaultdict(list))
    unfit: set[int] = field(default_factory=set)  # Arms with samples that have no logarithm.


@dataclass(frozen=True, slots=True)
class _Block:
    """The samples of a metric in a block: arrays with one element for each sample."""

    block: Ints
    arm_at: Ints
    round_number: Ints
    value: Floats
    weight: Floats

    @classmethod
    def of(cls, block: int, columns: Sequence[_Columns]) -> _Block:
        arm_at, round_number, value, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
        return cls(np.full(value.size, block), arm_at, round_number, value, weight)


class RunningEstimates:
    """Current estimates of a running campaign. Samples count once their block is closed.

    The estimates equal those of the report, because they use the same contrasts. A campaign of one platform after the
    other pairs no blocks: it has values, but no ratios. A block's figures are bit-identical alone and with others,
    because only blocks with the same rounds share an array.
    """

    def __init__(
        self, arms: Sequence[Arm], baseline: str, design: Design, watched: Mapping[MetricKey, Watched]
    ) -> None:
        """Start without samples. ``watched``: the metrics to estimate, headlines and CPU costs."""
        self.arms = tuple(arms)
        self._position = {arm: at for at, arm in enumerate(arms)}
        self._baseline = baseline
        self._base = [at for at, arm in enumerate(arms) if arm.platform == baseline]
        self._design = design
        self._watched = dict(watched)
        self._open: dict[int, dict[MetricKey, list[_Columns]]] = {}  # Samples by block, until the block is closed.
        self._closed: set[int] = set()
        self._figures = {key: BlockFigures() for key in watched}

    def add(self, trial: Trial) -> None:
        """Add a trial's samples. A failed trial has none."""
        if trial.status is not Status.OK:
            return
        for key in self._watched:
            samples = [sample for sample in trial.samples if key == (trial.key.workload, sample.metric)]
            if samples:
                weights = _weights(trial, cost=key[1] == CPU_COST)
                columns = (
                    np.full(len(samples), self._position[trial.key.arm], dtype=np.int64),
                    np.array([sample.round for sample in samples], dtype=np.int64),
                    np.array([sample.value for sample in samples], dtype=np.float64),
                    np.array([weights.get(sample.round, np.nan) for sample in samples], dtype=np.float64),
                )
                self._keep(trial.key.block, key, columns)

    def read(self, samples: pl.DataFrame) -> None:
        """Add samples that were measured before: a frame from `tare.estimates.grid.weighted`."""
        placed = samples.with_columns(
            arm_at=arm_positions(samples, self.arms), weight=pl.col("weight").cast(pl.Float64).fill_null(float("nan"))
        )
        parts = placed.partition_by("block", "workload", "metric", as_dict=True, include_key=False)
        for (block, workload, metric), part in parts.items():
            key = str(workload), str(metric)
            if key in self._watched:
                arm_at, round_number, value, weight = (
                    part[name].to_numpy() for name in ("arm_at", "round", "value", "weight")
                )
                self._keep(int(block), key, (arm_at, round_number, value, weight))

    def close(self, block: int) -> None:
        """Count the block from now on, with all of its arms that have run."""
        self._closed.add(block)

    def figures(self) -> Mapping[MetricKey, BlockFigures]:
        """Return the figures of the closed blocks, by metric."""
        blocks = sorted(self._closed & self._open.keys())
        samples = [(block, self._open.pop(block)) for block in blocks]
        self._closed.clear()
        for key, metric_figures in self._figures.items():
            metric_blocks = [_Block.of(block, columns[key]) for block, columns in samples if key in columns]
            for _, alike in groupby(metric_blocks, key=lambda block: np.unique(block.round_number).tobytes()):
                self._add_blocks(metric_figures, _grid(self.arms, list(alike), self._watched[key]))
        return self._figures

    def contrasts(self) -> dict[FigureRow, Contrast]:
        """Return the contrasts with the baseline, and of the baseline with itself, in every metric that has blocks."""
        contrasts = {}
        for (workload, metric), figures in self.figures().items():
            against = self._base if self._design is Design.BLOCKS else self._base[:1]
            for at, ratios in figures.ratios.items():
                figure = FigureRow(workload, metric, self.arms[at].platform)
                contrasts[figure] = self._contrast(figures, ratios, at, against, self._watched[workload, metric])
            if figures.twin.pairs:
                second, first = self._base[1], self._base[:1]
                contrasts[FigureRow(workload, metric, None)] = self._contrast(
                    figures, figures.twin, second, first, self._watched[workload, metric]
                )
        return contrasts

    def looks(self) -> dict[FigureRow, Looks]:
        """Return the looks of all contrasts, moderated like those of the report."""
        contrasts = self.contrasts()
        return moderated_looks(contrasts, frozenset(contrasts))

    def known(self, without: Container[str] = ()) -> dict[str, WorkloadWidths]:
        """Return the interval widths by workload. ``without``: platforms whose intervals need not get narrower."""
        rows: dict[str, list[WidthRow]] = {workload: [] for workload, _ in self._watched}
        for figure, looks in self.looks().items():
            if figure.platform is not None and figure.platform not in without:
                rows[figure.workload] += [WidthRow.of(look) for look in looks.all()]
        return {
            workload: WorkloadWidths(tuple(metric_rows), self._unpaired(workload))
            for workload, metric_rows in rows.items()
        }

    def _unpaired(self, workload: str) -> int:
        """Return the number of blocks with values of a workload that the baseline has no sample of; otherwise 0."""
        of_workload = [figures for (name, _), figures in self._figures.items() if name == workload]
        if any(at in figures.samples for figures in of_workload for at in self._base):
            return 0
        return max((len(values) for figures in of_workload for values in figures.values.values()), default=0)

    def _contrast(
        self, figures: BlockFigures, ratios: _Ratios, at: int, against: Sequence[int], watched: Watched
    ) -> Contrast:
        samples = {arm: np.concatenate(parts) for arm, parts in figures.samples.items()}
        # Without samples of the baseline, which may be unable to run the workload, there are no pairs.
        base = np.concatenate([np.empty(0), *(samples[arm] for arm in against if arm in samples)])
        step = step_of(watched.resolution, list(samples.values()))
        pairs = BlockRatios.joined(ratios.pairs)
        rounding = None
        if pairs.logs.size:
            rounding = rounding_of(step, samples[at], base, arms=len(against), rounds=ratios.rounds)
        totals = BlockRatios.joined(ratios.totals) if ratios.draws > pairs.logs.size else None
        return Contrast(pairs, totals, ratios.draws, len(against), rounding, watched.resolution is not None)

    def _keep(self, block: int, key: MetricKey, columns: _Columns) -> None:
        self._open.setdefault(block, {}).setdefault(key, []).append(columns)

    def _add_blocks(self, figures: BlockFigures, grid: Grid) -> None:
        figures.unfit |= {at for at, count in enumerate(grid.unfit) if count}
        for at in range(len(grid.arms)):
            figures.values[at] += grid.block_values(at).tolist()
            measured = grid.values[at][~np.isnan(grid.values[at])]
            if measured.size:
                figures.samples[at].append(measured)
        if self._design is Design.SEQUENTIAL:
            return
        base = self._base
        against = reference(grid, self._baseline, self._design)
        if figures.unfit & set(base):
            figures.twin = _Ratios()
        elif len(base) > 1:
            figures.twin.add(grid, base[1], base[:1])
        for at, arm in enumerate(grid.arms):
            if figures.unfit & {at, *base}:
                figures.ratios.pop(at, None)  # A sample without a logarithm leaves the arm without any ratio.
            elif arm.platform != self._baseline:
                figures.ratios[at].add(grid, at, against)


def _weights(trial: Trial, *, cost: bool) -> dict[int, float]:
    """Return, by round, the time of its slice, or for a CPU cost its CPU time; empty if the trial has no slices."""
    times = {facts.round: facts.cpu_ns if cost else facts.wall_ns for facts in trial.slices}
    return {at: float(time) for at, time in times.items() if time is not None}


def _grid(arms: Sequence[Arm], blocks: Sequence[_Block], watched: Watched) -> Grid:
    weight = np.concatenate([block.weight for block in blocks])
    return Grid.laid_out(
        arms,
        np.concatenate([block.arm_at for block in blocks]),
        np.concatenate([block.block for block in blocks]),
        np.concatenate([block.round_number for block in blocks]),
        np.concatenate([block.value for block in blocks]),
        None if np.isnan(weight).any() else weight,
        harmonic=watched.harmonic,
        resolution=watched.resolution,
    )
