"""Levels of a footprint (`tare.model.Level`) that a host in use cannot count."""

from __future__ import annotations

import os

from tare.model import Level

SCHEMA = "tare.footprint/1"

#: Levels that are counted in a lab, because a host in use does not allow it.
LAB_LEVELS = frozenset({Level.FUNCTIONS, Level.LINES, Level.INSTRUCTIONS})


def inside_lab() -> bool:
    """Return True if this host is a lab."""
    return "TARE_LAB" in os.environ
