"""How long something took while this process ran: what a slow or paused machine does to a test is not counted."""

import threading
import time


class Awake:
    """Counts the hundredths of a second in which a second thread got its turn; a context.

    Against an upper bound it is a clock on a quiet machine. On one that is too busy, or that stands still, the count
    stands still too, so that the bound holds what the code does and not what the machine does. It never runs fast.
    """

    TURN_S = 0.01
    #: A turn that comes this much late tells that the machine stood still.
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
        """For how many seconds of these the machine stood still: 0 where no turn came late."""
        return self._still_s

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
