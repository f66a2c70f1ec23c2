"""`tare capacity`: how many instances fit on the host, and what to reserve for each."""

from __future__ import annotations

from tare.extensions import CommandEntry

COMMANDS = (
    CommandEntry(
        "capacity",
        "Say how many instances fit, and what to reserve for each.",
        "tare.features.capacity.command:capacity",
        panel="Measure",
    ),
)
