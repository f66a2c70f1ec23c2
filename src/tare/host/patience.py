"""How much longer than usual everything may take: ``TARE_PATIENCE``, a factor, for machines that are emulated.

Limits say when to stop believing in a thing. In a lab under emulation all is slower by an order of magnitude, and a
guest that would come up must not be given up for that.
"""

from __future__ import annotations

import os


def stretched(seconds: float) -> float:
    """A time limit, as long as it is to be here."""
    try:
        factor = float(os.environ.get("TARE_PATIENCE") or 1)
    except ValueError:
        factor = 1.0
    return seconds * max(1.0, factor)
