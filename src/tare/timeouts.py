"""How much longer than usual everything may take: ``TARE_PATIENCE``, a factor, for machines that are emulated.

Limits say when to stop believing in a thing. In a lab under emulation all is slower by an order of magnitude, and a
guest that would come up must not be given up for that.

Limits are named and handed on (``time_limit_s``, ``*_LIMIT_S``, ``*GRACE_S``) as they are on a usual machine, and
stretched once: by whoever waits. `tests/test_timeouts.py` holds that.
"""

from __future__ import annotations

import os
import time


def stretched(seconds: float) -> float:
    """A time limit, as long as it is to be here."""
    try:
        factor = float(os.environ.get("TARE_PATIENCE") or 1)
    except ValueError:
        factor = 1.0
    return seconds * max(1.0, factor)


def until(limit_s: float) -> float:
    """When a limit that begins now is over: an instant of `time.monotonic`."""
    return time.monotonic() + stretched(limit_s)
