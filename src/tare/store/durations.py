"""Working time of a campaign, by block and workload, without the pauses between its segments.

A trial's turn (``turn_s`` of `Store.trials`) is the working time in seconds from the end of the previous trial to its
own end, including starts, hand-overs and clean-ups. Arms that run in turn (slices, short runs in rounds) end together,
so they share their common time equally. So the turns of a campaign add up to all of its work, and those of a block, a
workload or an arm to its cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.store.segments import Segment


def with_turns(trials: pl.DataFrame, segments: Sequence[Segment]) -> pl.DataFrame:
    """Return the frame with ``turn_s``, from its ``started`` (UNIX s) and ``wall_ns``."""
    ended = (trials["started"] + trials["wall_ns"] / 1e9).to_numpy()
    order = np.argsort(ended, kind="stable")
    worked = np.zeros(len(ended))  # Work until the end of each trial.
    for segment in segments:
        worked += np.clip(ended - segment.began, 0.0, segment.seconds)
    turns = np.empty_like(worked)
    turns[order] = np.diff(worked[order], prepend=0.0)
    groups = _together(trials, ended, order)
    if groups.size:
        turns = (np.bincount(groups, turns) / np.bincount(groups))[groups]
    return trials.with_columns(turn_s=pl.Series(turns, dtype=pl.Float64))


def _together(trials: pl.DataFrame, ended: NDArray[np.float64], order: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return a group number for each trial, from 0. Trials of a block and workload that ran in turn share a number."""
    stages = list(trials.select("block", "workload").iter_rows())
    began = trials["started"].to_list()
    groups = np.zeros(ended.size, dtype=np.int64)
    last: dict[object, tuple[int, float]] = {}  # By stage: the group of its last trial, and that trial's end.
    groups_so_far = 0
    for at in order.tolist():
        group, until = last.get(stages[at], (0, float("-inf")))
        if not began[at] < until:
            group, groups_so_far = groups_so_far, groups_so_far + 1
        groups[at] = group
        last[stages[at]] = group, float(ended[at])
    return groups


def block_durations(trials: pl.DataFrame) -> dict[int, float]:
    """Return the seconds of work of each block so far."""
    sums = trials.group_by("block").agg(pl.col("turn_s").sum())
    return {int(block): float(seconds) for block, seconds in sums.iter_rows()}


def workload_seconds(trials: pl.DataFrame) -> dict[str, float]:
    """Return the mean seconds of work of each workload in a block that runs it."""
    means = trials.group_by("workload").agg(pl.col("turn_s").sum() / pl.col("block").n_unique())
    return {str(name): float(seconds) for name, seconds in means.iter_rows()}
