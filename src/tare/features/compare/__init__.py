"""`tare compare`: all pairs of platforms."""

from __future__ import annotations

from tare.extensions import CommandEntry

COMMANDS = (
    CommandEntry(
        "compare",
        "Compare every platform with every other one.",
        "tare.features.compare.command:compare",
        panel="Read and decide",
    ),
)
