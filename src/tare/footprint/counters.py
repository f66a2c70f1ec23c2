"""Which counter there is for each level on this host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tare.footprint.functions import FunctionCounter
from tare.footprint.lines import LineCounter
from tare.footprint.model import Counter, Level
from tare.footprint.syscalls import SyscallCounter

COUNTERS: Mapping[Level, Callable[[], Counter]] = MappingProxyType(
    {Level.SYSCALLS: SyscallCounter, Level.FUNCTIONS: FunctionCounter, Level.LINES: LineCounter}
)


def counter_of(level: Level) -> Counter:
    """A counter of a level. It may refuse to `start`, where this host does not let one count."""
    return COUNTERS[level]()
