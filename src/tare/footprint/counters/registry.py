"""Which counter there is for each level, and whether this host lets it count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tare.footprint.counters import functions, instructions, lines, stacks, syscalls
from tare.footprint.counters.functions import FunctionCounter
from tare.footprint.counters.instructions import InstructionCounter
from tare.footprint.counters.lines import LineCounter
from tare.footprint.counters.stacks import StackCounter
from tare.footprint.counters.syscalls import SyscallCounter
from tare.footprint_model import Counter
from tare.model import Level

COUNTERS: Mapping[Level, Callable[[], Counter]] = MappingProxyType(
    {
        Level.SYSCALLS: SyscallCounter,
        Level.FUNCTIONS: FunctionCounter,
        Level.LINES: LineCounter,
        Level.STACKS: StackCounter,
        Level.INSTRUCTIONS: InstructionCounter,
    }
)
#: Each raises `HostError` with the reason where its level cannot be counted on this host, and changes nothing.
CHECKS: Mapping[Level, Callable[[], None]] = MappingProxyType(
    {
        Level.SYSCALLS: syscalls.check,
        Level.FUNCTIONS: functions.check,
        Level.LINES: lines.check,
        Level.STACKS: stacks.check,
        Level.INSTRUCTIONS: instructions.check,
    }
)


def counter_of(level: Level) -> Counter:
    """A counter of a level. It may refuse to `start`, where this host does not let one count."""
    return COUNTERS[level]()


def check(level: Level) -> None:
    """Raise `HostError` where this host does not let a level be counted, as far as can be seen without counting."""
    CHECKS[level]()
