"""How long a campaign took so far, from its trials' rows."""

from __future__ import annotations

import polars as pl

#: From the first trial's start to the last one's end, in seconds.
_SPAN = (pl.col("started") + pl.col("wall_ns") / 1e9).max() - pl.col("started").min()


def block_durations(trials: pl.DataFrame) -> dict[int, float]:
    """Seconds that each block took so far, from its trials' rows: from the first's start to the last's end."""
    if trials.is_empty():
        return {}
    spans = trials.group_by("block").agg(_SPAN.alias("seconds"))
    return {int(block): float(seconds) for block, seconds in spans.select("block", "seconds").iter_rows()}


def workload_seconds(trials: pl.DataFrame) -> dict[str, float]:
    """Seconds that each workload took of a block, on average: from its first trial's start to its last one's end."""
    if trials.is_empty():
        return {}
    spans = trials.group_by("block", "workload").agg(_SPAN.alias("seconds"))
    means = spans.group_by("workload").agg(pl.col("seconds").mean())
    return {str(name): float(seconds) for name, seconds in means.iter_rows()}


def whole_duration(trials: pl.DataFrame) -> float:
    """Seconds from the first trial's start to the last one's end, with all that came between; 0 without trials."""
    if trials.is_empty():
        return 0.0
    return float(trials.select(_SPAN).item())
