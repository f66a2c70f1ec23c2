"""Placement of tare's own threads outside of the measured CPUs, without an effect on the processes that it starts."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

from tare.host.kernel import cpulist

_kept_off: list[frozenset[int]] = []  # While tare keeps off some CPUs: the others that it may use.


def usable() -> frozenset[int]:
    """Return the CPUs that tare and its child processes may use, including those that it keeps off for now."""
    return _kept_off[0] if _kept_off else frozenset(os.sched_getaffinity(0))


def reachable() -> frozenset[int]:
    """Return the CPUs that this process may move to, including those that its parent excluded (isolcpus, taskset)."""
    sets: list[set[int]] = []

    def look() -> None:
        os.sched_setaffinity(0, range(cpulist.MAX_KERNEL))  # The kernel leaves out CPUs that a cpuset forbids.
        sets.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=look)  # CPUs are set for a thread, and this thread ends.
    thread.start()
    thread.join()
    return frozenset(sets[0])


@contextlib.contextmanager
def widened(measured: Collection[int]) -> Iterator[None]:
    """Let this process and its children use these CPUs too, because children inherit their parent's restriction."""
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
    """Run all threads of this process, and new ones, on the CPUs that are not ``measured``, if there are any.

    Processes that `tare.host.processes` starts meanwhile may still run on all of `usable`.
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
    """Let this thread run on its children's CPUs, which they inherit."""
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
        with contextlib.suppress(ProcessLookupError):  # The thread has ended meanwhile.
            os.sched_setaffinity(int(thread.name), cpus)
