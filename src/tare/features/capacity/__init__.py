"""`tare capacity`: how many instances fit on the host, and what to reserve for each."""

from __future__ import annotations

from tare.extensions import Command

COMMANDS = (
    Command(
        "capacity",
        "Say how many instances fit, and what to reserve for each.",
        "tare.features.capacity.command:capacity",
        panel="Measure",
    ),
)
