"""Adoption of orphaned processes: by the host's first process, or by this process within a context.

Engines adopt what their runtimes start (containerd's shim, conmon). The first process of many containers and machines
waits for its orphans late or never, and a runtime treats a process without a waiter as alive.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import threading
from collections.abc import Iterable, Iterator

#: Of prctl(2).
_SET_SUBREAPER = 36


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Make orphans below this process its children within the context. Wait for them by id with `gone`."""
    ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        ctypes.CDLL(None).prctl(_SET_SUBREAPER, 0, 0, 0, 0)


@contextlib.contextmanager
def reaping(pids: Iterable[int]) -> Iterator[None]:
    """Wait for these processes as they end, within the context, if this process has adopted them.

    An engine that ends a process waits until it is gone, and one that nobody has waited for is not.
    """
    over, leave = os.pipe()
    ends: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            ends[os.pidfd_open(pid)] = pid

    def reap() -> None:
        left = dict(ends)
        while over not in (ready := select.select([over, *left], [], [])[0]):
            for end in ready:
                gone(left.pop(end))

    reaper = threading.Thread(target=reap)
    reaper.start()
    try:
        yield
    finally:
        os.close(leave)
        reaper.join()
        for descriptor in (over, *ends):
            os.close(descriptor)


def gone(pid: int) -> bool:
    """Return True if a process has ended and was waited for. Wait for it if it is this process's child."""
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return True
    return not os.path.exists(f"/proc/{pid}")  # noqa: PTH110 (it is asked every half millisecond)
