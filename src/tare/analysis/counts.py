"""Numbers of trials by platform, workload and status."""

from __future__ import annotations

from collections import defaultdict

import polars as pl

from tare.analysis.hidden import Trials
from tare.analysis.quality import contamination
from tare.analysis.results import TrialCounts
from tare.model import Status

CountsByArm = dict[tuple[str, str], TrialCounts]


def count_trials(trials: pl.DataFrame, marked: pl.DataFrame | None = None) -> CountsByArm:
    """Count the trials by status, for each workload and platform.

    ``marked``: the contaminated trials, which are counted too; None: they are not counted.
    """
    rows = trials.group_by("workload", "platform").agg(
        (pl.col("status") == status).sum().alias(status) for status in (Status.OK, Status.FAILED, Status.UNSUPPORTED)
    )
    contaminated = {} if marked is None else contamination.by_reason(marked)
    counts: CountsByArm = defaultdict(TrialCounts)
    for workload, platform, ok, failed, unsupported in rows.iter_rows():
        n_marked, reasons = contaminated.get((workload, platform), (0, {}))
        counts[workload, platform] = TrialCounts(ok, failed, unsupported, n_marked, reasons)
    return counts


def trials_of(own: TrialCounts, baseline: TrialCounts) -> Trials:
    """Return how many trials of a platform and of the baseline failed."""
    return Trials(own.failed, own.ok + own.failed, baseline.failed, baseline.ok + baseline.failed)
