"""Keeps tare's own threads off the measured CPUs; processes that it starts run where they would have anyway."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

from tare.host.kernel import cpulist

_kept_off: list[frozenset[int]] = []  # while tare keeps off some: the CPUs that it may use else


def usable() -> frozenset[int]:
    """The CPUs that tare and what it starts may use, whichever it keeps off for a while."""
    return _kept_off[0] if _kept_off else frozenset(os.sched_getaffinity(0))


def reachable() -> frozenset[int]:
    """Return the CPUs that this process may move to, also those that its parent kept it from (isolcpus, taskset)."""
    found: list[set[int]] = []

    def look() -> None:
        os.sched_setaffinity(0, range(cpulist.MAX_KERNEL))  # the kernel leaves out what a cpuset forbids
        found.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=look)  # CPUs are a thread's, and this one ends
    thread.start()
    thread.join()
    return frozenset(found[0])


@contextlib.contextmanager
def widened(measured: Collection[int]) -> Iterator[None]:
    """Let this process and what it starts use these CPUs too: children inherit what their parent kept it from."""
    before = os.sched_getaffinity(0)
    if before.issuperset(measured):
        yield
        return
    _move_all_threads(before | set(measured))
    try:
        yield
    finally:
        _move_all_threads(before)


@contextlib.contextmanager
def kept_off(measured: Collection[int]) -> Iterator[None]:
    """Run all threads of this process, and those to come, on the CPUs that are not ``measured``; where there are any.

    What is started meanwhile by `tare.host.processes` may run on all of `usable`, as if nothing had been done.
    """
    before = usable()
    unmeasured = before - set(measured)
    if not unmeasured or _kept_off:
        yield
        return
    _kept_off.append(before)
    _move_all_threads(unmeasured)
    try:
        yield
    finally:
        _move_all_threads(before)
        _kept_off.clear()


@contextlib.contextmanager
def for_children() -> Iterator[None]:
    """Let this thread run where its children may: they inherit its CPUs."""
    if not _kept_off:
        yield
        return
    cpus_before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, usable())
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus_before)


def _move_all_threads(cpus: Collection[int]) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread.name), cpus)
