"""Registry of the counter for each level, and of the checks that this host can count the level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tare.features.kernel.counters import functions, instructions, lines, stacks, syscalls
from tare.features.kernel.counters.functions import FunctionCounter
from tare.features.kernel.counters.instructions import InstructionCounter
from tare.features.kernel.counters.lines import LineCounter
from tare.features.kernel.counters.stacks import StackCounter
from tare.features.kernel.counters.syscalls import SyscallCounter
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
#: Each check raises `HostError` with the reason if this host cannot count its level. A check changes nothing.
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
    """Return a counter of a level. Its `start` may fail if this host does not allow counting."""
    return COUNTERS[level]()


def check(level: Level) -> None:
    """Raise `HostError` if this host does not allow counting a level, as far as that is known without counting."""
    CHECKS[level]()
