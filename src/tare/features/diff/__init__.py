"""`tare diff`: changes of figures between two campaigns or platforms, as a gate."""

from __future__ import annotations

from tare.extensions import CommandEntry

COMMANDS = (
    CommandEntry(
        "diff",
        "Say what got worse since an earlier campaign: a gate.",
        "tare.features.diff.command:diff",
        panel="Read and decide",
    ),
)
