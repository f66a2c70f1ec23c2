"""Interrupts and other signals: what the parent ignores stays ignored (`nohup`), except where tare could not work."""

from __future__ import annotations

import signal
import time
from types import FrameType

#: Signals that end a command, with all of its cleanup.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: After an interrupt, cleanup runs undisturbed for this long; a later signal ends a cleanup that hangs.
UNDISTURBED_S = 10.0

#: Raises the interrupt, once for all signals that have come by then. Python runs their handlers in the order of their
#: numbers, and the handler of a second one while the exception of a first is on its way would become a `SystemError`.
_RAISING = signal.SIGRTMIN

#: A terminal that hangs up refuses data just before its signal comes.
HANG_UP_S = 1.0

_raised_at = float("-inf")


def take_over() -> None:
    """Set what this process does at signals.

    Where the parent ignores SIGCHLD, the kernel reaps children itself: their exit codes would be lost.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(_RAISING, _raise)
    for number in ENDING:
        if not ignored(number):
            signal.signal(number, _interrupt_soon)


def ignored(number: int) -> bool:
    """Return whether the parent lets this process ignore a signal."""
    return signal.getsignal(number) is signal.SIG_IGN


def interrupt() -> None:
    """Raise `KeyboardInterrupt`, unless it was raised just before: a terminal that hangs up sends two signals."""
    if _is_first():
        raise KeyboardInterrupt


def came() -> bool:
    """Return whether this process was interrupted."""
    return _raised_at > float("-inf")


def comes() -> bool:
    """Return whether this process was interrupted, or is within `HANG_UP_S`."""
    try:
        if not came():
            time.sleep(HANG_UP_S)
        return came()
    except KeyboardInterrupt:
        return True


def come_too_late() -> None:
    """Ignore the signals that end a command: while Python shuts down they would only replace its exit code."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _interrupt_soon(_number: int, _frame: FrameType | None) -> None:
    if _is_first():
        signal.raise_signal(_RAISING)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _is_first() -> bool:
    global _raised_at  # noqa: PLW0603 (signals are the process's)
    if time.monotonic() - _raised_at < UNDISTURBED_S:
        return False
    _raised_at = time.monotonic()
    return True
