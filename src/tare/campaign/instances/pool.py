"""The instances of a trial that starts its own: all of one arm's platform, as many as its steps need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tare.campaign.instances.gate import Gate, at_once
from tare.campaign.instances.launcher import DEFAULT, InstanceLauncher, RunningInstance, StartOptions, stop_all
from tare.errors import Failed, HostError, PlatformError, TareError
from tare.host.facts import counters
from tare.model import Arm, Progress
from tare.platforms.base import Platform

#: With more instances than this, the number left to stop is reported each time this many are stopped.
REPORTED_AT_ONCE = 20


@dataclass(slots=True)
class InstancePool:
    """Instances of one platform for one trial: `grow` starts them, `clear` ends them."""

    platform: Platform
    arm: Arm
    launcher: InstanceLauncher
    warn: Callable[[Failed], None]  # called with each failure to end an instance or to remove what was made for it
    keep: Callable[[bytes], None]  # called with the console's output of each instance that was lost
    published: bool = True  # whether a client calls them
    running_instances: list[RunningInstance] = field(default_factory=list)
    progress: Progress = lambda _: None  # called with what is done, where that takes a while

    def grow(self, count: int, terms: StartOptions = DEFAULT) -> list[RunningInstance]:
        """Return ``count`` instances: the running ones first, then new ones, started one after the other.

        Raises `HostError` when this host's memory does not hold them, and what `InstanceLauncher.start` raises, but
        with `PlatformError` in place of its `HostError`: that a start fails does not make the work unsupported here.
        """
        self._drop_dirty()
        self._check_fits(count, terms)
        while len(self.running_instances) < count:
            self._start(terms)
        return self.running_instances[:count]

    def add(self, terms: StartOptions = DEFAULT) -> RunningInstance:
        """Start one more, whatever the instances may take together: the caller keeps the host's reserve.

        Raises what `grow` raises.
        """
        return self._start(terms)

    def remove(self, running: RunningInstance) -> None:
        """End one instance of the pool."""
        self.running_instances[:] = [other for other in self.running_instances if other is not running]
        self._end([running])

    def grow_at_once(self, count: int) -> list[RunningInstance]:
        """Start ``count`` new instances, whose start commands are given at one instant. Raises what `grow` raises."""
        self._check_fits(count, DEFAULT)

        def start(_: int, gate: Gate) -> RunningInstance:
            return self._start(StartOptions(gate=gate.wait))

        return list(at_once(count, start))

    def keep_last_words(self) -> None:
        """Pass the console's output of each lost instance to ``keep``."""
        for running in self.running_instances:
            if running.session.dead is not None:
                self.keep(running.console())

    def add_kills(self, error: TareError) -> None:
        """Add to an error what was killed of the first instance of which something was."""
        if killed := next(filter(None, (running.killed() for running in self.running_instances)), ""):
            error.what = f"{killed}: {error.what}"

    def clear(self) -> None:
        """End all instances, including starts interrupted before returning."""
        self._end(self.running_instances)
        self.running_instances.clear()

    def _drop_dirty(self) -> None:
        dirty = [running for running in self.running_instances if running.dirty]
        self.running_instances[:] = [running for running in self.running_instances if not running.dirty]
        for failed in (failed for running in dirty for failed in running.dirty):
            self.warn(failed)
        self._end(dirty)

    def _end(self, running_instances: Sequence[RunningInstance]) -> None:
        for left in range(len(running_instances), 0, -REPORTED_AT_ONCE):
            if len(running_instances) > REPORTED_AT_ONCE:
                self.progress(f"{self.platform.name}: stopping instances, {left} left")
            for failed in stop_all(running_instances[max(0, left - REPORTED_AT_ONCE) : left]):
                self.warn(failed)

    def _start(self, terms: StartOptions) -> RunningInstance:
        try:
            terms = replace(terms, published=self.published)
            running = self.launcher.start(self.platform, self.arm, measured=False, terms=terms)
        except HostError as error:
            raise PlatformError(error.what, fix=error.fix) from error
        self.running_instances.append(running)
        return running

    def _check_fits(self, count: int, terms: StartOptions) -> None:
        """Each may take all of its limit: beyond the host's memory the kernel would kill processes, not only tare's."""
        limit = (terms.memory_bytes or self.launcher.resources.memory_bytes) + self.platform.monitor_bytes
        needed, available = (count - len(self.running_instances)) * limit, counters.memory().available
        if 0 < available < needed and not self.platform.elsewhere:  # 0: the host does not say
            raise HostError(
                f"{count} instances of {limit >> 20} MiB may take more than the {available >> 20} MiB that there are",
                fix=f"give --memory {(available // count - self.platform.monitor_bytes) >> 20} or less",
            )
