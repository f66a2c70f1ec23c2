"""What the host counts while a campaign runs: CPUs by kind, pressure, memory, swap, disk, network. Pure parsers."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.host.facts.machine import CPU_KINDS, parse_cpu_ticks, parse_load, parse_meminfo
from tare.host.kernel import sysinfo, text

SECTOR = 512
_SWAPPED = re.compile(r"^pswp(in|out) (\d+)$", re.MULTILINE)
#: Of a workqueue, for when memory is short: it sleeps, and there is one for each.
_RESCUER = "kworker/R-"
#: Moves the packets of one machine: before Linux 6.4 a kernel's thread, in the machine's control group.
_OF_MACHINES = "vhost-"
#: kworker/1:3-events, ksoftirqd/1, migration/1; not kworker/u8:4-flush-254:0 nor jbd2/vda-8.
_BOUND = re.compile(r"(?:kworker|ksoftirqd|migration|cpuhp|idle_inject|rcuc)/(\d+)")
_MS = 1000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Disk:
    """The counters of one block device since boot."""

    read_bytes: int
    written_bytes: int
    busy_ms: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory now, swap in pages since boot."""

    available: int
    swapped_in: int
    swapped_out: int


def load() -> float:
    """The load average over the last minute; where /proc does not show one that can be, as the kernel answers."""
    return parse_load(text.said("/proc/loadavg"), sysinfo.read().load)


def cpu_times() -> dict[int, tuple[int, ...]]:
    """Milliseconds by kind (`parse_cpu_ticks`) of every CPU that is online, since boot."""
    return parse_cpu_times(text.read("/proc/stat"), _MS)


def parse_cpu_times(stat: str, tick_ms: int) -> dict[int, tuple[int, ...]]:
    """The result of `cpu_times` from the text of ``/proc/stat`` (proc(5)); ``tick_ms``: ms of one clock tick."""
    times = {}
    for name, kinds in parse_cpu_ticks(stat).items():
        if name != "cpu":
            uncounted = (0,) * (CPU_KINDS - len(kinds))
            times[int(name[3:])] = tuple(count * tick_ms for count in (*kinds, *uncounted))
    return times


def steal_and_total(cpus: Collection[int]) -> tuple[int, int] | None:
    """Ticks since boot that the hypervisor below took from these CPUs, and all of theirs; None: it is not counted."""
    return parse_steal_and_total(text.said("/proc/stat"), cpus)


def parse_steal_and_total(stat: str, cpus: Collection[int]) -> tuple[int, int] | None:
    """The result of `steal_and_total` from the text of ``/proc/stat`` (proc(5))."""
    ticks = parse_cpu_ticks(stat)
    chosen = [ticks[name] for cpu in cpus if (name := f"cpu{cpu}") in ticks]
    if not chosen or any(len(kinds) < CPU_KINDS for kinds in chosen):
        return None
    return sum(kinds[7] for kinds in chosen), sum(map(sum, chosen))


def run_times() -> dict[int, int]:
    """Nanoseconds in which any task ran, by CPU, from ``/proc/schedstat``; empty where the kernel has none."""
    try:
        return parse_schedstat(text.read("/proc/schedstat"))
    except (OSError, ValueError, IndexError):
        return {}


def parse_schedstat(schedstat: str) -> dict[int, int]:
    """The seventh figure of each CPU's line (Documentation/scheduler/sched-stats.rst of the kernel)."""
    lines = (line.split() for line in schedstat.splitlines() if line.startswith("cpu"))
    return {int(words[0][3:]): int(words[7]) for words in lines}


def interrupts_ns() -> int:
    """Nanoseconds since boot in interrupts, on all CPUs, that are in the time of no task."""
    return 1_000_000 * parse_interrupts(text.read("/proc/stat"), _MS)


def parse_interrupts(text: str, tick_ms: int) -> int:
    """The result of `interrupts_ns` in ms, from the text of ``/proc/stat``; ``tick_ms``: ms of one clock tick.

    A kernel that times interrupts (CONFIG_IRQ_TIME_ACCOUNTING) takes them out of the tasks that they interrupt, and
    shows some time in them on every CPU. One that does not meets next to none by its clock ticks, which are themselves
    interrupts, and leaves their time in the tasks: then there is nothing beside these.
    """
    times = parse_cpu_times(text, tick_ms).values()
    return sum(irq + softirq for *_, irq, softirq, _ in times) if all(irq for *_, irq, _, _ in times) else 0


def pressure_us(what: str) -> int | None:
    """PSI: microseconds since boot in which some task waited for ``cpu``, ``memory`` or ``io``; None without PSI."""
    try:
        return parse_pressure(text.read(f"/proc/pressure/{what}"))
    except (OSError, ValueError, KeyError):
        return None


def parse_pressure(pressure: str) -> int:
    """Total stall time of "some" in microseconds from a file of ``/proc/pressure``.

    Raises `ValueError` or `KeyError` where it has no such line.
    """
    for line in pressure.splitlines():
        kind, *fields = line.split()
        if kind == "some":
            return int(dict(field.split("=") for field in fields)["total"])
    raise ValueError(f"no line 'some' in {pressure!r}")


def memory() -> Memory:
    """Memory that is available now, and pages swapped since boot."""
    available = parse_meminfo(text.read("/proc/meminfo"), "MemAvailable")
    return Memory(available, *parse_swapped(text.read("/proc/vmstat")))


def parse_swapped(vmstat: str) -> tuple[int, int]:
    """Pages swapped in and out since boot, from ``/proc/vmstat``; zeros where the kernel knows no swap."""
    pages = dict(_SWAPPED.findall(vmstat))
    return int(pages.get("in", 0)), int(pages.get("out", 0))


def device_of(folder: Path) -> tuple[int, int]:
    """Major and minor number of the device below a folder; not a block device's for btrfs, ZFS and overlays."""
    number = folder.stat().st_dev
    return os.major(number), os.minor(number)


def disk(device: tuple[int, int]) -> Disk | None:
    """The counters of a block device; None when there is no such one."""
    try:
        return parse_diskstats(text.read("/proc/diskstats"), device)
    except (OSError, ValueError, IndexError):
        return None


def parse_diskstats(diskstats: str, device: tuple[int, int]) -> Disk | None:
    """The result of `disk` from the text of ``/proc/diskstats`` (Documentation/admin-guide/iostats.rst of Linux)."""
    for line in diskstats.splitlines():
        words = line.split()
        if (int(words[0]), int(words[1])) == device:
            return Disk(int(words[5]) * SECTOR, int(words[9]) * SECTOR, int(words[12]))
    return None


def network(link: str) -> tuple[int, int]:
    """Bytes received and sent by a link; by all but loopback when it is not there."""
    return pick_link(parse_links(text.read("/proc/net/dev")), link)


def parse_links(dev: str) -> dict[str, tuple[int, int]]:
    """Bytes received and sent by each link, from ``/proc/net/dev`` (proc(5))."""
    links = {}
    for line in dev.splitlines():
        name, colon, rest = line.partition(":")
        if colon:
            words = rest.split()
            links[name.strip()] = int(words[0]), int(words[8])
    return links


def pick_link(links: Mapping[str, tuple[int, int]], link: str) -> tuple[int, int]:
    """One link's counters, or the sum of all but loopback."""
    chosen = [links[link]] if link in links else [counts for name, counts in links.items() if name != "lo"]
    return sum(received for received, _ in chosen), sum(sent for _, sent in chosen)


class KernelThreads:
    """CPU time of the kernel's threads that may run on some CPUs: they write back and free for all processes."""

    def __init__(self, cpus: Collection[int] = range(2**16)) -> None:
        self._cpus = frozenset(cpus)
        self._known: dict[str, bool] = {}  # by process id, whether it is counted
        self._last: dict[str, int] | None = None
        self._total = 0

    def total_ns(self) -> int:
        """CPU time of these threads in ns since the first call.

        0 where the kernel does not show them (`shown`).
        """
        now = {}
        pids = self._pids()
        self._known = {pid: self._known[pid] for pid in pids if pid in self._known}
        for pid in pids:
            try:
                if pid not in self._known:
                    self._known[pid] = runs_on(text.read(f"/proc/{pid}/comm").strip(), self._cpus)
                if self._known[pid]:
                    now[pid] = int(text.read(f"/proc/{pid}/schedstat").split()[0])
            except (OSError, IndexError):  # it ended
                continue
        if self._last is not None:
            # A thread that was not there before did all that it did since.
            self._total += sum(max(0, ns - self._last.get(pid, 0)) for pid, ns in now.items())
        self._last = now
        return self._total

    @property
    def shown(self) -> bool:
        """Whether they are: not in a namespace of processes, nor by a kernel without what distributions' have.

        That is CONFIG_PROC_CHILDREN and CONFIG_SCHED_INFO.
        """
        return bool(self._last)

    @staticmethod
    def _pids() -> list[str]:
        try:  # kthreadd's, of which all others are children
            return text.read("/proc/2/task/2/children").split() if text.read("/proc/2/comm") == "kthreadd\n" else []
        except OSError:
            return []


def runs_on(name: str, cpus: Collection[int]) -> bool:
    """Whether the kernel's thread of this name may run on one of these CPUs: some are bound to one, by their name.

    One that works for a single machine alone, in its control group, is that machine's.
    """
    if name.startswith((_RESCUER, _OF_MACHINES)):
        return False
    bound = _BOUND.match(name)
    return bound is None or int(bound[1]) in cpus
