"""`tare history`: changes of figures over many campaigns, as a gate."""

from __future__ import annotations

from tare.extensions import CommandEntry

COMMANDS = (
    CommandEntry(
        "history",
        "Say where figures changed over many campaigns: a gate.",
        "tare.features.history.command:history",
        panel="Read and decide",
    ),
)
