"""`tare compare`: all pairs of platforms."""

from __future__ import annotations

from tare.extensions import Command

COMMANDS = (
    Command(
        "compare",
        "Compare every platform with every other one.",
        "tare.features.compare.command:compare",
        panel="Read and decide",
    ),
)
