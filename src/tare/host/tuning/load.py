"""Noisy neighbours: processes that only use CPU time, to test the measurements beside them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from tare.host import processes
from tare.host.kernel import pinning


@contextlib.contextmanager
def busy(per_cpu: int) -> Iterator[int]:
    """Run this many busy processes for each CPU, wherever the kernel places them; yield their total."""
    count = per_cpu * len(pinning.usable())
    running = []
    try:
        for _ in range(count):
            running.append(processes.start([*processes.WITH_TARE, sys.executable, "-I", "-c", "while True: pass"]))
        yield count
    finally:
        for process in running:
            processes.end(process)
