"""Who waits for processes whose parent has ended: the first process of the host, or this one while it adopts them.

Engines adopt what their runtimes start (containerd's shim, conmon). The first process of many containers and machines
waits for its orphans late or never, and a runtime takes one that nobody has waited for as alive.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

#: Of prctl(2).
_SET_SUBREAPER = 36


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Orphans below this process become its children in this context; who knows their ids waits for them (`gone`)."""
    ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        ctypes.CDLL(None).prctl(_SET_SUBREAPER, 0, 0, 0, 0)


def gone(pid: int) -> bool:
    """Whether a process has ended and was waited for; where that is up to this one, it does so."""
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return True
    return not os.path.exists(f"/proc/{pid}")  # noqa: PTH110 (it is asked every half millisecond)
