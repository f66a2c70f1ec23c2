"""Host counters during a campaign: CPUs by kind, pressure, memory, swap, disk, network. Pure parsers."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.host.facts.machine_facts import CPU_KINDS, parse_cpu_ticks, parse_load, parse_meminfo
from tare.host.kernel import host_text, sysinfo

SECTOR = 512
_SWAPPED = re.compile(r"^pswp(in|out) (\d+)$", re.MULTILINE)
#: A workqueue's rescuer for low memory: it sleeps, and each workqueue has one.
_RESCUER = "kworker/R-"
#: Moves the packets of one machine: before Linux 6.4 a kernel thread, in the machine's control group.
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
    """Return the load average over the last minute; from the kernel itself if /proc shows no valid one."""
    return parse_load(host_text.said("/proc/loadavg"), sysinfo.read().load)


def cpu_times() -> dict[int, tuple[int, ...]]:
    """Return milliseconds by kind (`parse_cpu_ticks`) of every CPU that is online, since boot."""
    return parse_cpu_times(host_text.read("/proc/stat"), _MS)


def parse_cpu_times(stat: str, tick_ms: int) -> dict[int, tuple[int, ...]]:
    """Parse the result of `cpu_times` from ``/proc/stat`` (proc(5)); ``tick_ms``: ms of one clock tick."""
    times = {}
    for name, kinds in parse_cpu_ticks(stat).items():
        if name != "cpu":
            uncounted = (0,) * (CPU_KINDS - len(kinds))
            times[int(name[3:])] = tuple(count * tick_ms for count in (*kinds, *uncounted))
    return times


def steal_and_total(cpus: Collection[int]) -> tuple[int, int] | None:
    """Return the ticks since boot that the hypervisor took from these CPUs, and all of theirs; None: not counted."""
    return parse_steal_and_total(host_text.said("/proc/stat"), cpus)


def parse_steal_and_total(stat: str, cpus: Collection[int]) -> tuple[int, int] | None:
    """Parse the result of `steal_and_total` from ``/proc/stat`` (proc(5))."""
    ticks = parse_cpu_ticks(stat)
    chosen = [ticks[name] for cpu in cpus if (name := f"cpu{cpu}") in ticks]
    if not chosen or any(len(kinds) < CPU_KINDS for kinds in chosen):
        return None
    return sum(kinds[7] for kinds in chosen), sum(map(sum, chosen))


def run_times() -> dict[int, int]:
    """Return the nanoseconds in which any task ran, by CPU, from ``/proc/schedstat``; empty without this file."""
    try:
        return parse_schedstat(host_text.read("/proc/schedstat"))
    except (OSError, ValueError, IndexError):
        return {}


def parse_schedstat(schedstat: str) -> dict[int, int]:
    """Return the seventh figure of each CPU's line (Documentation/scheduler/sched-stats.rst of the kernel)."""
    lines = (line.split() for line in schedstat.splitlines() if line.startswith("cpu"))
    return {int(words[0][3:]): int(words[7]) for words in lines}


def interrupts_ns() -> int:
    """Return the nanoseconds since boot in interrupts, on all CPUs, that no task's time includes."""
    return 1_000_000 * parse_interrupts(host_text.read("/proc/stat"), _MS)


def parse_interrupts(text: str, tick_ms: int) -> int:
    """Parse the result of `interrupts_ns`, in ms, from ``/proc/stat``; ``tick_ms``: ms of one clock tick.

    A kernel that times interrupts (CONFIG_IRQ_TIME_ACCOUNTING) subtracts them from the interrupted tasks, and shows
    some interrupt time on every CPU. Other kernels only sample them at clock ticks, which are interrupts themselves, so
    they find almost none. The tasks then include that time, and the result is zero.
    """
    times = parse_cpu_times(text, tick_ms).values()
    return sum(irq + softirq for *_, irq, softirq, _ in times) if all(irq for *_, irq, _, _ in times) else 0


def pressure_us(what: str) -> int | None:
    """Return the microseconds since boot in which some task waited for ``cpu``, ``memory`` or ``io``.

    None without PSI.
    """
    try:
        return parse_pressure(host_text.read(f"/proc/pressure/{what}"))
    except (OSError, ValueError, KeyError):
        return None


def parse_pressure(pressure: str) -> int:
    """Return the total stall time of "some" in microseconds from a file of ``/proc/pressure``.

    Raises `ValueError` or `KeyError` if the line is missing.
    """
    for line in pressure.splitlines():
        kind, *fields = line.split()
        if kind == "some":
            return int(dict(field.split("=") for field in fields)["total"])
    raise ValueError(f"no line 'some' in {pressure!r}")


def memory() -> Memory:
    """Return the memory that is available now, and the pages swapped since boot."""
    available = parse_meminfo(host_text.read("/proc/meminfo"), "MemAvailable")
    return Memory(available, *parse_swapped(host_text.read("/proc/vmstat")))


def parse_swapped(vmstat: str) -> tuple[int, int]:
    """Return the pages swapped in and out since boot, from ``/proc/vmstat``; zeros on a kernel without swap."""
    pages = dict(_SWAPPED.findall(vmstat))
    return int(pages.get("in", 0)), int(pages.get("out", 0))


def device_of(folder: Path) -> tuple[int, int]:
    """Return major and minor number of a folder's device; not of a block device for btrfs, ZFS and overlays."""
    number = folder.stat().st_dev
    return os.major(number), os.minor(number)


def disk(device: tuple[int, int]) -> Disk | None:
    """Return the counters of a block device, or None if there is no such device."""
    try:
        return parse_diskstats(host_text.read("/proc/diskstats"), device)
    except (OSError, ValueError, IndexError):
        return None


def parse_diskstats(diskstats: str, device: tuple[int, int]) -> Disk | None:
    """Parse the result of `disk` from ``/proc/diskstats`` (Documentation/admin-guide/iostats.rst of Linux)."""
    for line in diskstats.splitlines():
        words = line.split()
        if (int(words[0]), int(words[1])) == device:
            return Disk(int(words[5]) * SECTOR, int(words[9]) * SECTOR, int(words[12]))
    return None


def network(link: str) -> tuple[int, int]:
    """Return the bytes received and sent by a link; by all links but loopback if it does not exist."""
    return pick_link(parse_links(host_text.read("/proc/net/dev")), link)


def parse_links(dev: str) -> dict[str, tuple[int, int]]:
    """Return the bytes received and sent by each link, from ``/proc/net/dev`` (proc(5))."""
    links = {}
    for line in dev.splitlines():
        name, colon, rest = line.partition(":")
        if colon:
            words = rest.split()
            links[name.strip()] = int(words[0]), int(words[8])
    return links


def pick_link(links: Mapping[str, tuple[int, int]], link: str) -> tuple[int, int]:
    """Return one link's counters, or the sum of all links but loopback."""
    chosen = [links[link]] if link in links else [counts for name, counts in links.items() if name != "lo"]
    return sum(received for received, _ in chosen), sum(sent for _, sent in chosen)


class KernelThreads:
    """CPU time of kernel threads on some CPUs: they write back and free memory for all processes."""

    def __init__(self, cpus: Collection[int] = range(2**16)) -> None:
        self._cpus = frozenset(cpus)
        self._known: dict[str, bool] = {}  # By process id: True if it is counted.
        self._last: dict[str, int] | None = None
        self._total = 0

    def total_ns(self) -> int:
        """Return the CPU time of these threads in ns since the first call.

        0 if the kernel does not show them (`shown`).
        """
        now = {}
        pids = self._pids()
        self._known = {pid: self._known[pid] for pid in pids if pid in self._known}
        for pid in pids:
            try:
                if pid not in self._known:
                    self._known[pid] = runs_on(host_text.read(f"/proc/{pid}/comm").strip(), self._cpus)
                if self._known[pid]:
                    now[pid] = int(host_text.read(f"/proc/{pid}/schedstat").split()[0])
            except (OSError, IndexError):  # The thread has ended.
                continue
        if self._last is not None:
            # A new thread's whole CPU time counts.
            self._total += sum(max(0, ns - self._last.get(pid, 0)) for pid, ns in now.items())
        self._last = now
        return self._total

    @property
    def shown(self) -> bool:
        """Return True if they are visible: not in a process namespace, nor on a kernel without the usual options.

        These options are CONFIG_PROC_CHILDREN and CONFIG_SCHED_INFO.
        """
        return bool(self._last)

    @staticmethod
    def _pids() -> list[str]:
        try:  # All other kernel threads are children of kthreadd.
            return (
                host_text.read("/proc/2/task/2/children").split()
                if host_text.read("/proc/2/comm") == "kthreadd\n"
                else []
            )
        except OSError:
            return []


def runs_on(name: str, cpus: Collection[int]) -> bool:
    """Return True if the kernel thread with this name may run on one of these CPUs: some names show a binding.

    A thread that works for a single machine, in its control group, counts as that machine's.
    """
    if name.startswith((_RESCUER, _OF_MACHINES)):
        return False
    bound = _BOUND.match(name)
    return bound is None or int(bound[1]) in cpus
