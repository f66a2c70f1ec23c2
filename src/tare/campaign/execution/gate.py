"""Several things at one instant, each in a thread of its own: all are held at a gate until the last has come to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from tare.errors import HostError
from tare.timeouts import stretched

#: The last must have come to the gate by then: what is before it is preparation, not the start itself.
GATE_LIMIT_S = 60.0

T = TypeVar("T")


class Gate:
    """Opens when so many are there."""

    def __init__(self, parties: int) -> None:
        self._opened = threading.Event()
        self._barrier = threading.Barrier(parties, self._opened.set)

    def wait(self) -> None:
        """Be held until all are there. Raises `HostError` when one gave up instead, or never came."""
        try:
            self._barrier.wait(stretched(GATE_LIMIT_S))
        except threading.BrokenBarrierError:
            if self._opened.is_set():  # somebody gave up who was faster out of it than we are
                return
            raise HostError("another of those that were to begin at one instant did not come so far") from None

    def give_up(self) -> None:
        """Tell the others not to wait; nothing happens once the gate has opened."""
        self._barrier.abort()


def at_once(count: int, task: Callable[[int, Gate], T]) -> Sequence[T]:
    """Run the task so many times at once, told its number and the gate to wait at; results by number.

    All have ended on return. Raises what the first of them failed for.
    """
    gate = Gate(count)
    failed: list[BaseException] = []

    def guarded(number: int) -> T:
        try:
            return task(number, gate)
        except BaseException as error:
            failed.append(error)  # first: whoever is sent away from the gate fails because of this one
            gate.give_up()
            raise

    with ThreadPoolExecutor(count) as pool:
        try:
            futures = [pool.submit(guarded, number) for number in range(count)]
            wait(futures)
        except BaseException:  # Ctrl-C: nobody waits for a word that will not come
            gate.give_up()
            raise
    if failed:
        raise failed[0]
    return [future.result() for future in futures]
