"""Runs tasks at one instant, each in a thread of its own: they wait at a gate, a barrier, until all have come to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from tare.errors import HostError
from tare.timeouts import stretched

#: Time limit for the last task to come to the gate: what comes before is preparation, not the measured start.
GATE_LIMIT_S = 60.0

T = TypeVar("T")


class Gate:
    """A barrier that opens when ``parties`` threads wait at it."""

    def __init__(self, parties: int) -> None:
        self._opened = threading.Event()
        self._barrier = threading.Barrier(parties, self._opened.set)

    def wait(self) -> None:
        """Wait until all threads do. Raises `HostError` when one gave up instead, or did not come in time."""
        try:
            self._barrier.wait(stretched(GATE_LIMIT_S))
        except threading.BrokenBarrierError:
            if self._opened.is_set():  # another thread left the open gate first, and then gave up
                return
            raise HostError("another instance that should start at the same instant did not get that far") from None

    def give_up(self) -> None:
        """Let the waiting threads fail; without effect once the gate has opened."""
        self._barrier.abort()


def at_once(count: int, task: Callable[[int, Gate], T]) -> Sequence[T]:
    """Run ``task(number, gate)`` in ``count`` threads, with numbers from 0; returns the results by number.

    All threads have ended on return. Raises the first error of a task.
    """
    gate = Gate(count)
    failed: list[BaseException] = []

    def guarded(number: int) -> T:
        try:
            return task(number, gate)
        except BaseException as error:
            failed.append(error)  # before giving up: the threads at the gate then fail because of this error
            gate.give_up()
            raise

    with ThreadPoolExecutor(count) as pool:
        try:
            futures = [pool.submit(guarded, number) for number in range(count)]
            wait(futures)
        except BaseException:  # Ctrl-C: the threads must not wait for one that will not come
            gate.give_up()
            raise
    if failed:
        raise failed[0]
    return [future.result() for future in futures]
