"""Which counter there is for each level on this host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tare.errors import HostError
from tare.footprint.functions import FunctionCounter
from tare.footprint.model import Counter, Level
from tare.footprint.syscalls import SyscallCounter

#: Whoever counts another level puts its counter here.
COUNTERS: Mapping[Level, Callable[[], Counter]] = MappingProxyType(
    {Level.SYSCALLS: SyscallCounter, Level.FUNCTIONS: FunctionCounter}
)


def counter_of(level: Level) -> Counter:
    """A counter of a level. Raises `HostError` where this host has none; one that there is may refuse to `start`."""
    make = COUNTERS.get(level)
    if make is None:
        raise HostError(
            f"kernel {level.value} are not counted on a host that is in use",
            fix=f"count them in a lab: tare lab run -- tare footprint --level {level.value}",
        )
    return make()
