"""The instances of one trial that starts its own: all of one arm's platform, as many as it comes to need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tare.campaign.gate import Gate, at_once
from tare.campaign.instances import USUAL, Live, Nursery, Terms, stop_all
from tare.errors import Failed, HostError, PlatformError
from tare.host import counters
from tare.model import Arm
from tare.platforms.base import Platform


@dataclass(slots=True)
class Brood:
    """Make it, let it grow, and `clear` it in the end."""

    platform: Platform
    arm: Arm
    nursery: Nursery
    warn: Callable[[Failed], None]  # told what could not be ended or removed
    keep: Callable[[bytes], None]  # given the console of one that was lost
    lives: list[Live] = field(default_factory=list)

    def grow(self, count: int, terms: Terms = USUAL) -> list[Live]:
        """So many instances, those that there are first; the others are started one after the other.

        Raises `HostError` when this host's memory does not hold them, and else as `Nursery.start`, but never
        `HostError` for a start: the work is not what cannot be done here.
        """
        self._drop_dirty()
        self._check_fits(count, terms)
        while len(self.lives) < count:
            self._start(terms)
        return self.lives[:count]

    def grow_at_once(self, count: int) -> list[Live]:
        """So many new instances, whose start commands are given at one instant; raises as `grow`."""
        self._check_fits(count, USUAL)

        def start(_: int, gate: Gate) -> Live:
            return self._start(Terms(gate=gate.wait))

        return list(at_once(count, start))

    def keep_last_words(self) -> None:
        """Keep the consoles of those that are lost."""
        for live in self.lives:
            if live.session.dead is not None:
                self.keep(live.console())

    def clear(self) -> None:
        """End all."""
        # Also those that a Ctrl-C kept from being handed back.
        self._end(self.lives)
        self.lives.clear()

    def _drop_dirty(self) -> None:
        dirty = [live for live in self.lives if live.dirty]
        self.lives[:] = [live for live in self.lives if not live.dirty]
        for failed in (failed for live in dirty for failed in live.dirty):
            self.warn(failed)
        self._end(dirty)

    def _end(self, lives: Iterable[Live]) -> None:
        for failed in stop_all(lives):
            self.warn(failed)

    def _start(self, terms: Terms) -> Live:
        try:
            live = self.nursery.start(self.platform, self.arm, measured=False, terms=terms)
        except HostError as error:
            raise PlatformError(error.what, fix=error.fix) from error
        self.lives.append(live)
        return live

    def _check_fits(self, count: int, terms: Terms) -> None:
        """Each may take all of its limit: beyond the host's memory, instances would be killed, and not only ours."""
        limit = terms.memory_bytes or self.nursery.resources.memory_bytes
        needed, available = (count - len(self.lives)) * limit, counters.memory().available
        if needed > available and not self.platform.elsewhere:
            raise HostError(
                f"{count} instances of {limit >> 20} MiB may take more than the {available >> 20} MiB that there are",
                fix=f"give --memory {(available // count) >> 20} or less",
            )
