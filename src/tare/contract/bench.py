"""What a check works with: one platform on prepared ground, and how a broken promise is told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tare.campaign.execution.runs import Client
from tare.campaign.instances.launcher import InstanceLauncher, RunningInstance
from tare.errors import TareError
from tare.model import Arm
from tare.platforms.base import Platform


class BrokenPromiseError(TareError):
    """A promise that a platform does not keep."""


def promise(kept: object, otherwise: str) -> None:
    """Raise `BrokenPromiseError` in these words unless it is kept."""
    if not kept:
        raise BrokenPromiseError(otherwise)


@dataclass(slots=True)
class Bench:
    """A platform under test. One instance is shared by the checks that do it no harm."""

    platform: Platform
    launcher: InstanceLauncher
    client: Client
    _shared: RunningInstance | None = field(default=None)

    @property
    def running(self) -> RunningInstance:
        """The shared instance, whose start was measured; a new one when the last has died."""
        if self._shared is not None and self._shared.session.dead is not None:
            self.close()
        if self._shared is None:
            self._shared = self.start(measured=True)
        return self._shared

    def start(self, *, measured: bool = False) -> RunningInstance:
        """An instance of its own; the caller stops it."""
        return self.launcher.start(self.platform, Arm(self.platform.name), measured=measured)

    @contextlib.contextmanager
    def fresh(self, *, measured: bool = False) -> Iterator[RunningInstance]:
        """An instance of its own."""
        running = self.start(measured=measured)
        try:
            yield running
        finally:
            running.stop()

    def close(self) -> None:
        """Stop the shared instance."""
        running, self._shared = self._shared, None
        if running is not None:
            running.stop()


@dataclass(frozen=True, slots=True)
class Check:
    """One promise: a name for the command line, what is promised in words, and how it is tried.

    ``run`` may return what is to be said of a promise that is kept.
    """

    name: str
    title: str
    run: Callable[[Bench], str | None]
