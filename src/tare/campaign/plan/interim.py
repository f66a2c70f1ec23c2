"""A running campaign's trials and estimates in memory, so that looks and the progress line need not read the file."""

from __future__ import annotations

import polars as pl

from tare.estimates.grid import harmonic, weighted
from tare.estimates.running import RunningEstimates, Watched
from tare.model import Trial
from tare.store import Store, with_turns

#: Columns of `Store.trials` that are kept in memory: those that looks and progress need.
_COLUMNS = {
    "seq": pl.Int64(),
    "block": pl.Int64(),
    "workload": pl.String(),
    "platform": pl.String(),
    "replica": pl.Int64(),
    "status": pl.String(),
    "started": pl.Float64(),
    "wall_ns": pl.Int64(),
}


class Interim:
    """A campaign's trials and estimates so far: those in its file when it begins or is resumed, and those added since.

    The estimates are those of headlines and CPU costs. A decision from them is the same as one from the whole file.
    """

    def __init__(self, store: Store) -> None:
        self.record = record = store.record
        self.estimates = RunningEstimates(
            record.all_arms(),
            record.baseline,
            record.design,
            {
                (workload.name, metric.name): Watched(harmonic(metric.direction, workload.mode), metric.resolution)
                for workload in record.workloads
                for metric in workload.main_metrics
            },
        )
        self.estimates.read(weighted(store.samples(), store.slices()))
        self._store = store
        self._trials = store.trials().select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items())
        self._new: list[tuple[object, ...]] = []  # rows that are not among them yet

    def add(self, trial: Trial) -> None:
        """Add a trial that was committed to the store."""
        self.estimates.add(trial)
        key = trial.key
        arm = key.arm.platform, key.arm.replica
        self._new.append((trial.seq, key.block, key.workload, *arm, trial.status.value, trial.started, trial.wall_ns))

    def trials(self) -> pl.DataFrame:
        """All trials so far, a row each, in the schedule's order; columns of `Store.trials`: key, status and times."""
        if self._new:
            new = pl.DataFrame(self._new, schema=_COLUMNS, orient="row")
            self._trials = pl.concat([self._trials, new]).sort("seq", maintain_order=True)
            self._new.clear()
        return with_turns(self._trials, self._store.segments())
