"""How long something took while this process ran: what a slow or paused machine does to a test is not counted."""

import re
import threading
import time


def check_wait(message, limit_s, took_s):
    """Assert that the wait reported as ``within N s`` is at least its limit and at most the time measured here.

    A stalled machine lengthens both, so no fixed upper bound is right.
    """
    (reported,) = re.findall(r"within ([0-9.]+) s\b", message)
    # Messages have three digits, so the measured time is rounded in the same way.
    assert limit_s <= float(reported) <= float(f"{took_s:.3g}")


class Awake:
    """Counts the hundredths of a second in which a second thread got its turn; a context.

    Against an upper bound it is a clock on a quiet machine. On one that is too busy, or that stands still, the count
    stands still too, so that the bound holds what the code does and not what the machine does. It never runs fast.
    """

    TURN_S = 0.01
    #: A turn later than this means that the machine stalled.
    STILL_S = 0.1

    def __init__(self):
        self._over = threading.Event()
        self._turns = 0
        self._still_s = 0.0
        self._thread = threading.Thread(target=self._count, daemon=True)

    def _count(self):
        last = time.monotonic()
        while not self._over.wait(self.TURN_S):
            self._turns += 1
            now = time.monotonic()
            late_s, last = now - last - self.TURN_S, now
            self._still_s += late_s if late_s > self.STILL_S else 0.0

    @property
    def seconds(self):
        """Since it began."""
        return self._turns * self.TURN_S

    @property
    def still_s(self):
        """Return how long the machine has stalled since it began, in seconds; 0 if no turn was late."""
        return self._still_s

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
