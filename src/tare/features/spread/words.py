"""Texts of `tare spread`."""

from __future__ import annotations

#: The heading of medians of single iterations.
WITHIN_TRIALS = "Within trials: medians over the blocks, by iteration"
#: What the columns of `tare spread` are.
SPREAD = (
    "Standard deviations of the ratio to the baseline: of a block; of starts, which only more blocks make up "
    "for; of rounds within a start. Best rounds: of a block, for the same time. Changes: the block or "
    "iteration from which on figures differ (E-divisive, 1 % false alarms)."
)
