"""Counter of system calls that reach the host's kernel, by name.

A BPF program (``syscalls.bpf.c``) is attached to the kernel's tracepoint at the entry of system calls, directly and not
through tracefs, which may not be mounted. It adds one to a counter of its CPU, and to a second one if the task is in
the instance's control group or below. There is no buffer between the kernel and the harness, so the only calls lost are
those that find the program already running on their CPU. The kernel counts them: `Counts.lost`.

The tracepoint comes after seccomp and ptrace (``syscall_trace_enter`` in the kernel's ``kernel/entry/common.c``). A
call that a filter refuses, or that gVisor intercepts, does not reach the host's kernel and is not counted. Requests in
io_uring's rings, and calls that the vDSO answers, are not counted either.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tare.features.kernel.reading import bpf, call_tables
from tare.features.kernel.reading.instance import look_for
from tare.footprint_model import HitCounts, Scope
from tare.model import Level

SOURCE = "syscalls.bpf.c"
#: Must match ``syscalls.bpf.c``.
NUMBERS, SCOPES, ABIS = 1024, 2, 2
#: Sum of numbers that the kernel has no call for, and of x32 (x86-64 with short pointers).
UNKNOWN = "unknown"
#: Suffix of calls by the 32-bit ABI, which partly run other code in the kernel.
COMPAT = " [i386]"

Values = npt.NDArray[np.uint64]


class SyscallCounter:
    """A `tare.footprint_model.Counter` of `Level.SYSCALLS`, for x86-64."""

    level = Level.SYSCALLS
    reads_itself = False  # The counters are memory of this process, so a read makes no system call.

    def __init__(self) -> None:
        self._loaded: bpf.Loaded | None = None
        self._values: Values | None = None
        self._base: Values = np.zeros((SCOPES, ABIS, NUMBERS), np.uint64)
        self._missed = 0

    def start(self, group: str) -> None:
        """Start to count from zero. ``group``: path below the root of each hierarchy; the group may not exist yet.

        A second call switches to another group. Raises `HostError`, with the fix, if this host does not allow counting.
        """
        if self._loaded is None:
            known()  # Load the names first: it is slow, and must not be counted.
            _names()
            self._load()
        assert self._loaded is not None
        look_for(self._loaded, group)
        self.reset()

    def read(self) -> HitCounts:
        """Return the counts since `start` or the last `reset`."""
        loaded, counted = self._now()
        counted -= self._base
        native, compat = _names()
        hits = {
            scope: {**named(counted[at, 0], native), **named(counted[at, 1], compat, COMPAT)}
            for at, scope in enumerate((Scope.HOST, Scope.INSTANCE))
        }
        return HitCounts(hits=hits, lost=loaded.missed() - self._missed, known=known())

    def reset(self) -> None:
        """Restart the count from zero."""
        loaded, self._base = self._now()
        self._missed = loaded.missed()

    def stop(self) -> None:
        """Stop counting. May be called twice."""
        self._values = None  # Drop the view of memory that is unmapped next.
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None

    def _load(self) -> None:
        shape = (bpf.possible_cpus(), SCOPES, ABIS, NUMBERS)
        loaded = bpf.Loaded(bpf.compiled(SOURCE), {"counts": shape[0]})
        try:
            view = loaded.memory("counts", int(np.prod(shape)) * 8)
            self._values = np.frombuffer(view, np.uint64).reshape(shape)
        except BaseException:
            loaded.close()
            raise
        self._loaded = loaded

    def _now(self) -> tuple[bpf.Loaded, Values]:
        assert self._loaded is not None, "it was started"
        assert self._values is not None
        return self._loaded, self._values.sum(axis=0)


def check() -> None:
    """Raise `HostError` if system calls cannot be counted here. Counts for a moment to find out.

    No single setting tells if BPF is allowed.
    """
    counter = SyscallCounter()
    try:
        counter.start("none")
    finally:
        counter.stop()


def named(counts: Values, names: Mapping[int, str], mark: str = "") -> dict[str, int]:
    """Return counts by name from counts by number. Numbers without a name are summed."""
    hits: dict[str, int] = {}
    for number in np.flatnonzero(counts):
        name = f"{names.get(int(number), UNKNOWN)}{mark}"
        hits[name] = hits.get(name, 0) + int(counts[number])
    return hits


def _names() -> tuple[Mapping[int, str], Mapping[int, str]]:
    """Return names by number, for each ABI in the order of the BPF program."""
    return call_tables.by_number("x86_64"), call_tables.by_number("i386")


@functools.cache
def known() -> int:
    """Return how many 64-bit system calls this host's kernel has."""
    return len(call_tables.native().numbers)
