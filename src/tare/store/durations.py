"""How long a campaign worked, by block and workload: pauses between its segments count for nothing.

A trial's turn (``turn_s`` of `Store.trials`) are the seconds of work from the end of the trial before it to its own:
with the starts, hand-overs and clean-ups that led to it. So the turns of a campaign add up to all of its work, and
those of a block, a workload or an arm to what these cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from tare.store.segments import Segment


def with_turns(trials: pl.DataFrame, segments: Sequence[Segment]) -> pl.DataFrame:
    """The frame with ``turn_s``, from its ``started`` (UNIX s) and ``wall_ns``."""
    ended = (trials["started"] + trials["wall_ns"] / 1e9).to_numpy()
    order = np.argsort(ended, kind="stable")
    worked = np.zeros(len(ended))  # until the end of each trial
    for segment in segments:
        worked += np.clip(ended - segment.began, 0.0, segment.seconds)
    turns = np.empty_like(worked)
    turns[order] = np.diff(worked[order], prepend=0.0)
    return trials.with_columns(turn_s=pl.Series(turns, dtype=pl.Float64))


def block_durations(trials: pl.DataFrame) -> dict[int, float]:
    """Seconds of work that each block took so far."""
    sums = trials.group_by("block").agg(pl.col("turn_s").sum())
    return {int(block): float(seconds) for block, seconds in sums.iter_rows()}


def workload_seconds(trials: pl.DataFrame) -> dict[str, float]:
    """Seconds of work that each workload took of a block that it ran in, on average."""
    means = trials.group_by("workload").agg(pl.col("turn_s").sum() / pl.col("block").n_unique())
    return {str(name): float(seconds) for name, seconds in means.iter_rows()}
