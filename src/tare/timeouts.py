"""Time limits, multiplied by the environment variable ``TARE_PATIENCE`` on slow machines, as emulated ones are.

A limit says when to give up on something. In a lab under emulation everything takes ten times as long or more, and a
guest that would come up in the end must not be given up on.

Limits are named and handed on (``time_limit_s``, ``*_LIMIT_S``, ``*GRACE_S``) as they are on a usual machine, and
stretched once: by whoever waits. `tests/test_timeouts.py` holds that.
"""

from __future__ import annotations

import os
import time


def stretched(seconds: float) -> float:
    """Return a time limit in seconds, multiplied by ``TARE_PATIENCE`` where that is a number above 1."""
    try:
        factor = float(os.environ.get("TARE_PATIENCE") or 1)
    except ValueError:
        factor = 1.0
    return seconds * max(1.0, factor)


def until(limit_s: float) -> float:
    """Return the instant at which a limit in seconds that begins now is over, on the clock `time.monotonic`."""
    return time.monotonic() + stretched(limit_s)
