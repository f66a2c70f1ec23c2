"""CPUs that share a core with the measured ones: by measurement if the host does not show it, as in most guests."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from tare.host import probe_cache, processes
from tare.host.facts import machine_facts
from tare.host.facts.machine_facts import HostFacts
from tare.host.facts.topology import Cores

#: A CPU with less than this share of its speed is slowed down by the busy one. Threads of one core keep 0.5 to 0.7 of
#: it beside each other; CPUs that share only a cache and a clock rate keep 0.9 and more.
SLOWED = 0.85
#: Turns with the other CPU busy, as many without, and their length.
TURNS, TURN_S = 8, 0.02
#: With more measured CPUs than a duet's, only the probes' CPU is measured.
TRIED = 2
#: With more CPUs it would take too long; such guests usually see their topology.
MAX = 16
#: How long a result is valid, in seconds, because a hypervisor may move a guest's CPUs.
BELIEVED_S = 3600.0
#: How long an empty result is valid: neighbours that were busy all the time may have hidden the effect.
DOUBTED_S = 300.0


def completed(host: HostFacts, measured: Sequence[int]) -> HostFacts:
    """Return the facts with the measured CPUs' cores, found by measurement if the host itself does not show them."""
    siblings = cores(tuple(measured)) if host.cpu.siblings is None else None
    if siblings is None:
        return host
    return host.model_copy(update={"cpu": host.cpu.model_copy(update={"siblings": siblings, "tried": True})})


@functools.cache
def cores(measured: tuple[int, ...]) -> Cores | None:
    """Return the cores of these CPUs: from the host, or by measurement; None if neither shows them.

    A measurement is remembered for a while, because it keeps two CPUs busy for half a second. It does not find the
    cores of other CPUs, so each of those is listed by itself. With many measured CPUs, only the last is measured, on
    which probes run: all of them would take minutes.
    """
    machine_cores, usable = machine_facts.cores_of_machine(), os.sched_getaffinity(0)
    if machine_cores is not None or len(usable) > MAX or not usable.issuperset(measured):
        return machine_cores
    probed = measured if len(measured) <= TRIED else (max(measured),)
    probed_cores, _ = probe_cache.remembered(
        "siblings",
        probe_cache.Try[Cores | None],
        [*probed, "of", *sorted(usable)],
        lambda: by_trial(probed, usable, slowed),
        lambda answer: BELIEVED_S if answer else DOUBTED_S,
    )
    return probed_cores


def by_trial(measured: Sequence[int], usable: set[int], slowed: Callable[[int, int], float]) -> Cores | None:
    """Return the cores, from the share of its speed that a CPU keeps while another is busy (``slowed``).

    None if no CPU is slowed down: beside neighbours that are always busy, a measurement shows nothing.
    """
    measured_cores: list[set[int]] = []
    for cpu in measured:
        if not any(cpu in core for core in measured_cores):  # Otherwise its core is already known.
            measured_cores.append(
                {cpu} | {neighbour for neighbour in usable - {cpu} if slowed(cpu, neighbour) < SLOWED}
            )
    if all(len(core) == 1 for core in measured_cores):
        return None
    shared = set().union(*measured_cores)
    return tuple(sorted({tuple(sorted(core)) for core in measured_cores} | {(cpu,) for cpu in usable - shared}))


def slowed(cpu: int, neighbour: int) -> float:
    """Return the share of its speed that a CPU keeps while another is busy: the median of turns with and without."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        with _busy_on(neighbour) as set_busy:
            shares = []
            for _ in range(TURNS):
                speed = {}
                for busy in random.sample((True, False), 2):
                    set_busy(busy)
                    speed[busy] = _speed()
                shares.append(speed[True] / speed[False])
    finally:
        os.sched_setaffinity(0, before)
    return sorted(shares)[TURNS // 2]


@contextlib.contextmanager
def _busy_on(cpu: int) -> Iterator[Callable[[bool], None]]:
    """Run a process on this CPU; yield the function that lets it run (True) or stops it (False)."""
    process = processes.start([*processes.WITH_TARE, sys.executable, "-I", "-c", "while True: pass"])
    try:
        os.sched_setaffinity(process.pid, {cpu})
        time.sleep(5 * TURN_S)  # Wait until it has started.
        yield lambda busy: os.kill(process.pid, signal.SIGCONT if busy else signal.SIGSTOP)
    finally:
        processes.end(process)


def _speed() -> float:
    """Return steps of a core-bound loop per second of CPU time, which excludes waiting for the CPU."""
    begin, end = time.thread_time(), time.monotonic() + TURN_S
    count = 0
    while not count or time.monotonic() < end or time.thread_time() == begin:  # CPU time may be counted by ticks.
        count += sum(1 for _ in range(200))
    return count / (time.thread_time() - begin)
