"""Which levels of a footprint (`tare.model.Level`) a host in use does not let one count."""

from __future__ import annotations

import os

from tare.model import Level

SCHEMA = "tare.footprint/1"

#: Those that a host in use does not let one count.
LAB_LEVELS = frozenset({Level.FUNCTIONS, Level.LINES, Level.INSTRUCTIONS})


def inside_lab() -> bool:
    """Whether this host is a lab."""
    return "TARE_LAB" in os.environ
