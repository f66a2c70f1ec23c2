"""Signals: what the parent ignores stays ignored (`nohup`), except where tare could not work."""

from __future__ import annotations

import signal
import time
from types import FrameType

#: What ends a command, with all of its cleanup.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: After an interrupt, cleanup runs undisturbed for this long; a later signal ends a cleanup that hangs.
UNDISTURBED_S = 10.0

_raised_at = float("-inf")


def take_over() -> None:
    """Set what this process does at signals.

    Where the parent ignores SIGCHLD, the kernel reaps children itself: their exit codes would be lost.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in ENDING:
        if not ignored(number):
            signal.signal(number, interrupt)


def ignored(number: int) -> bool:
    """Return whether the parent lets this process ignore a signal."""
    return signal.getsignal(number) is signal.SIG_IGN


def interrupt(_number: int = 0, _frame: FrameType | None = None) -> None:
    """Raise `KeyboardInterrupt`, unless it was raised just before: a terminal that hangs up sends two signals."""
    global _raised_at  # noqa: PLW0603 (signals are the process's)
    if time.monotonic() - _raised_at >= UNDISTURBED_S:
        _raised_at = time.monotonic()
        raise KeyboardInterrupt
