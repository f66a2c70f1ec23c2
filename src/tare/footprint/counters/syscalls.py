"""System calls that the host's kernel is asked for, counted by name.

A BPF program (``syscalls.bpf.c``) is attached to the kernel's tracepoint at the entry of system calls, by itself and
not by way of tracefs, which need not be mounted. It adds one to a counter of the CPU that it runs on: two counters
where the task is in the instance's control group or below. There is no buffer between the kernel and the harness, so
nothing can be lost but a call that finds the program running on its CPU; the kernel counts those: `Counts.lost`.

The tracepoint comes after seccomp and ptrace have had their say (``syscall_trace_enter`` in the kernel's
``kernel/entry/common.c``): a call that a filter refuses, or that gVisor intercepts, is not one that the host's kernel
was asked for, and is not here. Neither are what io_uring's rings carry, and what the vDSO answers.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tare.footprint.kernel import bpf, calls
from tare.footprint.kernel.instance import look_for
from tare.footprint_model import Counts, Scope
from tare.model import Level

SOURCE = "syscalls.bpf.c"
#: The same in ``syscalls.bpf.c``.
NUMBERS, SCOPES, ABIS = 1024, 2, 2
#: What the kernel has no call for is counted together. So is x32 (x86-64 with short pointers).
UNKNOWN = "unknown"
#: Behind the names of calls by the 32-bit ABI, whose code in the kernel is partly another.
COMPAT = " [i386]"

Values = npt.NDArray[np.uint64]


class SyscallCounter:
    """A `tare.footprint_model.Counter` of `Level.SYSCALLS`; x86-64."""

    level = Level.SYSCALLS
    reads_itself = False  # the counters are memory of this process's

    def __init__(self) -> None:
        self._loaded: bpf.Loaded | None = None
        self._values: Values | None = None
        self._base: Values = np.zeros((SCOPES, ABIS, NUMBERS), np.uint64)
        self._missed = 0

    def start(self, group: str) -> None:
        """Begin to count from zero. ``group``: below the root of each hierarchy; it need not be there yet.

        Again: for another group. Raises `HostError` where this host does not let one count, with the fix.
        """
        if self._loaded is None:
            known()  # slow, and so done before anything is counted
            _names()
            self._load()
        assert self._loaded is not None
        look_for(self._loaded, group)
        self.reset()

    def read(self) -> Counts:
        """What was counted since `start` or the last `reset`."""
        loaded, counted = self._now()
        counted -= self._base
        native, compat = _names()
        hits = {
            scope: {**named(counted[at, 0], native), **named(counted[at, 1], compat, COMPAT)}
            for at, scope in enumerate((Scope.HOST, Scope.INSTANCE))
        }
        return Counts(hits=hits, lost=loaded.missed() - self._missed, known=known())

    def reset(self) -> None:
        """Begin to count from zero again."""
        loaded, self._base = self._now()
        self._missed = loaded.missed()

    def stop(self) -> None:
        """Count no more. May be called twice."""
        self._values = None  # it looks into the memory that goes now
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
    """Raise `HostError` where system calls cannot be counted here: by counting for a moment.

    No single setting says whether BPF is allowed.
    """
    counter = SyscallCounter()
    try:
        counter.start("none")
    finally:
        counter.stop()


def named(counts: Values, names: Mapping[int, str], mark: str = "") -> dict[str, int]:
    """Counts by number as counts by name; those without a name together."""
    hits: dict[str, int] = {}
    for number in np.flatnonzero(counts):
        name = f"{names.get(int(number), UNKNOWN)}{mark}"
        hits[name] = hits.get(name, 0) + int(counts[number])
    return hits


def _names() -> tuple[Mapping[int, str], Mapping[int, str]]:
    """Names by number, for each ABI in the order of the BPF program."""
    return calls.by_number("x86_64"), calls.by_number("i386")


@functools.cache
def known() -> int:
    """How many 64-bit system calls this host's kernel has."""
    return len(calls.native().numbers)
