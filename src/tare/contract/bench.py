"""The bench of a check: one platform in a host session, and the error for a broken promise."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import InstanceLauncher, RunningInstance
from tare.errors import TareError
from tare.host import cgroup
from tare.model import Arm
from tare.platforms.base import Platform


class BrokenPromiseError(TareError):
    """A promise that a platform does not keep."""


def promise(kept: object, otherwise: str) -> None:
    """Raise `BrokenPromiseError` with the text ``otherwise`` unless ``kept`` is true."""
    if not kept:
        raise BrokenPromiseError(otherwise)


@dataclass(slots=True)
class Bench:
    """A platform under test. The checks that do not harm an instance share one."""

    platform: Platform
    launcher: InstanceLauncher
    client: LoadClient
    _shared: RunningInstance | None = field(default=None)
    _spare: list[RunningInstance] = field(default_factory=list)

    @property
    def running(self) -> RunningInstance:
        """The shared instance, whose start was measured; a new one when the last was lost."""
        if self._shared is not None and self._shared.session.dead is not None:
            self.close()
        if self._shared is None:
            self._shared = self.start(measured=True)
        return self._shared

    def start(self, *, measured: bool = False) -> RunningInstance:
        """Start an instance that is not shared; the caller stops it. Raises what `InstanceLauncher.start` raises.

        Where only one can run at a time, the shared one is stopped before it.
        """
        if self.platform.alone:
            self.close()
        return self.launcher.start(self.platform, Arm(self.platform.name), measured=measured)

    def spare(self, *running: RunningInstance) -> None:
        """Leave instances that took no harm to the checks to come: by emulation a start takes seconds."""
        self._spare += running

    @contextlib.contextmanager
    def fresh(self) -> Iterator[RunningInstance]:
        """An instance that is not shared, and may be harmed; it is stopped when the context is left."""
        running = self._spare.pop() if self._spare else self.start()
        try:
            yield running
        finally:
            running.stop()

    def close(self) -> None:
        """Stop the shared instance, and those that no check has asked for."""
        shared = [] if self._shared is None else [self._shared]
        running_instances, self._shared, self._spare = [*shared, *self._spare], None, []
        with contextlib.ExitStack() as ends:  # each is stopped even if another fails
            for running in running_instances:
                ends.callback(running.stop)


@dataclass(frozen=True, slots=True)
class PromiseCheck:
    """One promise: a name for the command line, the promise in words, and the function that checks it.

    ``run`` raises `BrokenPromiseError`, or returns a remark on a promise that is kept, or None.
    """

    name: str
    title: str
    run: Callable[[Bench], str | None]
    needs_agent: bool = True  # else it is held to platforms without an agent too
    needs_several: bool = False  # at a time
    needs_groups: bool = False  # control groups that tare may make

    def inapplicable(self, platform: Platform) -> str:
        """Return why it says nothing about a platform; "" where it does."""
        if self.needs_groups and cgroup.hierarchies().none:
            return f"no control groups are delegated to this user: {cgroup.DELEGATE}"
        if self.needs_several and platform.alone:
            return f"one runs at a time: {platform.alone}"
        return "it has no agent, and runs no command" if self.needs_agent and not platform.has_agent else ""
