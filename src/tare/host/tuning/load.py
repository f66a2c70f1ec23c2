"""Noisy neighbours: processes that do nothing but take CPU time, to see what the instrument is worth beside them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from tare.host import processes
from tare.host.kernel import pinning


@contextlib.contextmanager
def busy(per_cpu: int) -> Iterator[int]:
    """Run so many busy processes for each CPU, wherever the kernel puts them; yields their number."""
    count = per_cpu * len(pinning.usable())
    running = []
    try:
        for _ in range(count):
            running.append(processes.start([*processes.WITH_TARE, sys.executable, "-I", "-c", "while True: pass"]))
        yield count
    finally:
        for process in running:
            processes.end(process)
