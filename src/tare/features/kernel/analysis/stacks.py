"""Folded stack samples: shares of time by the reason for entering the kernel, and the tree of a flame graph.

A folded stack is a process and its active functions, outermost first, separated by ";" (the form of B. Gregg's flame
graphs, CACM 59(6), 2016). Its count is of samples. A share of samples is a share of the CPUs' working time, because
samples come at a steady pace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tare.footprint_model import GUEST, NO_PATH, USER

#: The entry code that all system calls pass before the functions of their own.
_GATE = ("entry_", "do_syscall_", "do_int80_", "do_fast_syscall_", "x64_sys_call", "ia32_sys_call")
_OF_CALLS = ("__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_", "__do_sys_", "__se_sys_", "ksys_")
#: Prefixes of an interrupt's or a fault's entry, which is named after it.
_OF_INTERRUPTS = ("asm_sysvec_", "asm_exc_", "asm_")

Hits = Mapping[str, int]


class Entered(StrEnum):
    """Reason for entering the kernel."""

    NAMED = "named"  # A system call, an interrupt or a fault, by its name.
    THREAD = "thread"  # A kernel thread's own work, by its name.
    GATE = "gate"  # Before or after a call's own work, or in it if the compiler left no function of it.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A reason for entering the kernel; ``name``: of the call, the interrupt or the thread."""

    kind: Entered
    name: str = ""


GATE = KernelEntry(Entered.GATE)


@dataclass(frozen=True, slots=True)
class SampleParts:
    """Numbers of samples in user code, in guests and in the kernel."""

    samples: int
    user: int  # In a process's own code.
    guest: int  # In the guest of a virtual machine.

    @property
    def kernel(self) -> int:
        """Samples in the host's kernel: neither in user space nor in a guest."""
        return self.samples - self.user - self.guest

    @classmethod
    def of(cls, hits: Hits) -> SampleParts:
        """Create it from folded stacks with their numbers of samples."""
        kinds: Counter[str] = Counter()
        for stack, count in hits.items():
            kinds[stack.rpartition(";")[2]] += count
        return cls(sum(kinds.values()), kinds[USER], kinds[GUEST])


def own_time(hits: Hits) -> Counter[str]:
    """Return samples by the kernel's running function, without those in functions that it called."""
    samples: Counter[str] = Counter()
    for stack, count in hits.items():
        function = stack.rpartition(";")[2]
        if function not in {USER, GUEST}:
            samples[function] += count
    return samples


def entries(hits: Hits) -> Counter[KernelEntry]:
    """Return samples in the kernel by the reason for entering it: a system call, an interrupt, a kernel thread."""
    samples: Counter[KernelEntry] = Counter()
    for stack, count in hits.items():
        process, *chain = stack.split(";")
        if chain and chain[-1] not in {USER, GUEST}:
            samples[_entry(process, chain)] += count
    return samples


def _entry(process: str, chain: list[str]) -> KernelEntry:
    if chain[0] == NO_PATH:
        return KernelEntry(Entered.UNKNOWN)
    if chain[0].startswith("asm_"):
        return KernelEntry(Entered.NAMED, _without(chain[0], _OF_INTERRUPTS))
    if not chain[0].startswith(_GATE):
        # A new process starts where kernel threads do, and leaves through the same entry code.
        return KernelEntry(Entered.THREAD, process) if len(chain) > 2 else GATE
    first = next((name for name in chain if not name.startswith(_GATE)), None)
    if first is None or "_thunk" in first:
        return GATE
    return KernelEntry(Entered.NAMED, _without(first, _OF_CALLS).partition(".")[0])


def _without(name: str, starts: tuple[str, ...]) -> str:
    return next((name.removeprefix(start) for start in starts if name.startswith(start)), name)


@dataclass(frozen=True, slots=True)
class FlameNode:
    """A frame of a flame graph: all samples whose stacks begin with the same frames."""

    name: str
    parent: int  # Its position in the list; -1: the root.
    samples: int  # Its own and those of all frames above it.


def tree(hits: Hits, least: float = 0.0) -> list[FlameNode]:
    """Return the frames of a flame graph, each after its parent, siblings by name; the root first.

    Frames with less than the share ``least`` of all samples are left out, with all frames above them. If a parent is
    wider than its children together, it was running itself, or the missing children are too narrow to be drawn.
    """
    totals: Counter[tuple[str, ...]] = Counter()
    for stack, count in hits.items():
        frames = tuple(stack.split(";"))
        for depth in range(len(frames) + 1):
            totals[frames[:depth]] += count
    floor = least * totals[()]
    places: dict[tuple[str, ...], int] = {}
    nodes: list[FlameNode] = []
    for path in sorted(path for path, count in totals.items() if count >= floor):
        places[path] = len(nodes)
        nodes.append(FlameNode(path[-1] if path else "", places[path[:-1]] if path else -1, totals[path]))
    return nodes
