"""Footprints and surfaces: the host's kernel as platforms use it."""

from __future__ import annotations

from tare.extensions import Command

COMMANDS = (
    Command(
        "footprint",
        "Count what platforms make the host's kernel do.",
        "tare.features.kernel.command:footprint",
        panel="Measure",
    ),
)
