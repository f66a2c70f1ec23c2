"""Ctrl-C while a campaign runs: the first lets the trial end, the second ends it now."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

FIRST = "Ctrl-C: the trial under way is finished first, and all is closed; press it again to end now"


class Stopping:
    """A context in which the first SIGINT of a campaign that has begun its blocks is kept until a trial is stored.

    Before the first block there is no trial to wait for: an interrupt passes at once. Other signals end at once too, as
    they always do.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._measuring = False
        self._wanted = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def measuring(self) -> None:
        """A block begins: from now on there are trials to wait for."""
        self._measuring = True

    def stored(self) -> None:
        """A trial is in the store. Raises `KeyboardInterrupt` when the user wants the campaign to end."""
        if self._wanted:
            raise KeyboardInterrupt

    def _interrupted(self, _number: int, _frame: FrameType | None) -> None:
        if self._wanted or not self._measuring:
            raise KeyboardInterrupt
        self._wanted = True
        self._say(FIRST)
