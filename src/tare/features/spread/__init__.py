"""`tare spread`: the sources of a campaign's spread, and changes in its course."""

from __future__ import annotations

from tare.extensions import CommandEntry

COMMANDS = (
    CommandEntry(
        "spread",
        "Say where the spread of each ratio comes from.",
        "tare.features.spread.command:spread",
        panel="Read and decide",
    ),
)
