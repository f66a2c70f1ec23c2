"""Which counter there is for each level on this host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tare.errors import HostError
from tare.footprint import functions, syscalls
from tare.footprint.functions import FunctionCounter
from tare.footprint.model import Counter, Level
from tare.footprint.syscalls import SyscallCounter

#: Whoever counts another level puts its counter here.
COUNTERS: Mapping[Level, Callable[[], Counter]] = MappingProxyType(
    {Level.SYSCALLS: SyscallCounter, Level.FUNCTIONS: FunctionCounter}
)

#: Raises `HostError` where a level cannot be counted on this host, and why; leaves the host as it is.
CHECKS: Mapping[Level, Callable[[], None]] = MappingProxyType(
    {Level.SYSCALLS: syscalls.check, Level.FUNCTIONS: functions.check}
)


def counter_of(level: Level) -> Counter:
    """A counter of a level. Raises `HostError` where this host has none; one that there is may refuse to `start`."""
    make = COUNTERS.get(level)
    if make is None:
        raise _elsewhere(level)
    return make()


def check(level: Level) -> None:
    """Raise `HostError` where this host does not let a level be counted, as far as can be seen without counting."""
    look = CHECKS.get(level)
    if look is None:
        raise _elsewhere(level)
    look()


def _elsewhere(level: Level) -> HostError:
    return HostError(
        f"kernel {level.value} are not counted on a host that is in use",
        fix=f"count them in a lab: tare lab run -- tare footprint --level {level.value}",
    )
