"""Registry of the counter for each level, and of the checks that this host can count the level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tare.features.kernel.counters import exact_counts, functions, source_lines, stack_sampler, syscalls
from tare.features.kernel.counters.exact_counts import InstructionCounter
from tare.features.kernel.counters.functions import FunctionCounter
from tare.features.kernel.counters.source_lines import LineCounter
from tare.features.kernel.counters.stack_sampler import StackCounter
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
        Level.LINES: source_lines.check,
        Level.STACKS: stack_sampler.check,
        Level.INSTRUCTIONS: exact_counts.check,
    }
)


def counter_of(level: Level) -> Counter:
    """Return a counter of a level. Its `start` may fail if this host does not allow counting."""
    return COUNTERS[level]()


def check(level: Level) -> None:
    """Raise `HostError` if this host does not allow counting a level, as far as that is known without counting."""
    CHECKS[level]()
