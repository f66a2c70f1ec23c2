"""Resources that a host may run out of while instances are added: their use, and their ceilings.

Memory's own parts are those of ``/proc/meminfo`` that are never available again while they are used. The rest comes in
pieces: threads, open files, ports of a bridge, mounts, terminals, memory control groups, neighbours.
"""

from __future__ import annotations

import dataclasses
import os
import re
import resource
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from tare.host import cgroup
from tare.host.facts.machine_facts import parse_meminfo
from tare.host.kernel import cpulist, host_text, process_table

#: Ports that a Linux bridge can have (BR_MAX_PORTS, net/bridge/br_private.h).
BRIDGE_PORTS = 1024
#: Memory control groups that a kernel can have at once (MEM_CGROUP_ID_MAX, include/linux/memcontrol.h).
MEMORY_GROUPS = 65_535
#: A line of /proc/slabinfo: name (which may have blanks), objects in use, objects, objects a slab, pages a slab.
_SLAB_CACHE = re.compile(r"^(\S.*?) +(\d+) +(\d+) +\d+ +(\d+) +(\d+) : ", re.MULTILINE)
#: Caches of what belongs to cached inodes, which the kernel frees with these, though it calls it unreclaimable.
_WITH_INODES = frozenset({"lsm_inode_cache"})
#: What a mount takes where `/proc/slabinfo` does not show it: ``struct mount``, in bytes (fs/mount.h, x86-64).
_MOUNT = 384
#: The cache of mounts, and what each of them has beside: its connection to a mount point, its name, and counters of
#: each CPU. Measured with 100,000 mounts on Linux 6.18, in bytes.
_MOUNTS, _BESIDE_MOUNT = "mnt_cache", 140
#: Groups that are made to see what tables each has: the objects of a few may lie in room that a CPU has at hand.
_EMPTY_GROUPS = 64
#: Threads that a kernel for 64 bits can have in a namespace of processes (PID_MAX_LIMIT, include/linux/threads.h).
_MOST_TASKS = 4 << 20


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Parts of the host's memory, in bytes."""

    total: int
    available: int
    anonymous: int  # with files that lie in memory alone
    slab: int  # that cannot be reclaimed
    slab_free: int  # of that, the room of objects that are not in use; 0 where the kernel does not show it
    page_tables: int
    stacks: int  # the kernel's, of all threads
    per_cpu: int
    cpu_lists: int = 0  # free pages that lie in CPUs' own lists, which are in no count of free or available memory


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The number of a resource in use, and its ceiling."""

    used: int
    most: int


def host_memory() -> HostMemory:
    """Read the parts now."""
    return parse_host_memory(
        host_text.said("/proc/meminfo"), _slab_free(), parse_cpu_lists(host_text.said("/proc/zoneinfo"))
    )


def parse_host_memory(meminfo: str, slab_free: int = 0, cpu_lists: int = 0) -> HostMemory:
    """Parse the text of ``/proc/meminfo`` (proc(5)) as `host_memory` does; what a kernel does not list is 0."""

    def size(*names: str) -> int:
        return sum(parse_meminfo(meminfo, name) for name in names)

    return HostMemory(
        total=size("MemTotal"),
        available=size("MemAvailable"),
        anonymous=size("AnonPages", "Shmem"),
        slab=size("SUnreclaim"),
        slab_free=slab_free,
        page_tables=size("PageTables", "SecPageTables"),
        stacks=size("KernelStack"),
        per_cpu=size("Percpu"),
        cpu_lists=cpu_lists,
    )


def mean_memory(readings: Iterable[HostMemory]) -> HostMemory:
    """Take the mean of several readings, part by part."""
    rows = [dataclasses.astuple(reading) for reading in readings]
    return HostMemory(*(round(sum(column) / len(rows)) for column in zip(*rows, strict=True)))


def parse_cpu_lists(zoneinfo: str) -> int:
    """Sum, in bytes, the free pages in all CPUs' lists of ``/proc/zoneinfo`` (mm/vmstat.c); 0 where it is not shown.

    A kernel since Linux 6.7 lets them grow to hundreds of MiB, and MemAvailable moves by what goes in and out.
    """
    counts = re.findall(r"^ +count: +(\d+)$", zoneinfo, re.MULTILINE)
    return sum(map(int, counts)) * os.sysconf("SC_PAGE_SIZE")


def _slab_free() -> int:
    accounts = Path("/sys/kernel/slab").glob("*/reclaim_account")
    return parse_slab_free(
        host_text.said("/proc/slabinfo"), {path.parent.name for path in accounts if host_text.said(path).strip() == "1"}
    )


def parse_slab_free(slabinfo: str, reclaimable: Collection[str]) -> int:
    """Sum, in bytes, the room of unused objects in ``/proc/slabinfo`` (slabinfo(5)), without the caches of these names.

    Where many instances have ended it is tens of MiB, and the next ones' objects go there before a slab is added.
    """
    free = 0.0
    for name, *numbers in _SLAB_CACHE.findall(slabinfo):
        active, objects, a_slab, pages = map(int, numbers)
        if name in reclaimable or not a_slab:
            continue
        if name in _WITH_INODES:
            free += objects / a_slab * pages
        else:
            free += (objects - active) / a_slab * pages
    return round(free * os.sysconf("SC_PAGE_SIZE"))


def mount_bytes() -> int:
    """Return what a mount takes of the kernel's memory, in bytes, which is charged to the process that made it."""
    return parse_mount_bytes(host_text.said("/proc/slabinfo"))


def parse_mount_bytes(slabinfo: str) -> int:
    """Parse the text of ``/proc/slabinfo`` as `mount_bytes` does."""
    for name, *numbers in _SLAB_CACHE.findall(slabinfo):
        _, _, a_slab, pages = map(int, numbers)
        if name == _MOUNTS and a_slab:
            return round(pages * os.sysconf("SC_PAGE_SIZE") / a_slab) + _BESIDE_MOUNT
    return _MOUNT + _BESIDE_MOUNT


def tasks() -> Ceiling | None:
    """Threads of the whole host, and how many the kernel or a control group above tare lets there be."""
    words = host_text.said("/proc/loadavg").split()
    if len(words) < 4 or "/" not in words[3]:
        return None
    used = int(words[3].partition("/")[2])
    limits = [_number("/proc/sys/kernel/threads-max"), _number("/proc/sys/kernel/pid_max"), _MOST_TASKS]
    return Ceiling(used, min(limit for limit in limits if limit))


def files() -> Ceiling | None:
    """Open files of the whole host."""
    words = host_text.said("/proc/sys/fs/file-nr").split()
    return Ceiling(int(words[0]), int(words[2])) if len(words) == 3 else None


def own_files() -> Ceiling:
    """Open files of this process, and how many it may have."""
    return Ceiling(len(list(Path("/proc/self/fd").iterdir())), resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def bridge_ports(bridge: str | None = None) -> Ceiling | None:
    """Ports of a bridge; without its name of the one that has the most of them; None without a bridge."""
    ports = ports_by_bridge()
    if bridge is not None:
        return Ceiling(ports.get(bridge, 0), BRIDGE_PORTS)
    return Ceiling(max(ports.values()), BRIDGE_PORTS) if ports else None


def ports_by_bridge() -> dict[str, int]:
    """Count the ports that each bridge of this network namespace has."""
    return {ports.parent.name: len(list(ports.iterdir())) for ports in Path("/sys/class/net").glob("*/brif")}


def mounts() -> Ceiling | None:
    """Mounts in this process's namespace."""
    most = _number("/proc/sys/fs/mount-max")
    return Ceiling(mount_count() + 1, most) if most else None


def mount_count() -> int:
    """Count the mounts in this process's namespace."""
    return host_text.said("/proc/self/mountinfo").count("\n")


def terminals() -> Ceiling | None:
    """Pseudo-terminals."""
    most = _number("/proc/sys/kernel/pty/max")
    return Ceiling(_number("/proc/sys/kernel/pty/nr"), most) if most else None


def neighbours() -> Ceiling | None:
    """Entries of IPv4's table of neighbours, which instances behind a bridge have one of each."""
    most = _number("/proc/sys/net/ipv4/neigh/default/gc_thresh3")
    return Ceiling(max(0, host_text.said("/proc/net/arp").count("\n")), most) if most else None


def memory_groups() -> Ceiling | None:
    """Memory control groups; None where the kernel does not count them (cgroup v2 counts none by kind)."""
    count = group_count()
    return Ceiling(count, MEMORY_GROUPS) if count and not cgroup.hierarchies().unified else None


def group_count() -> int:
    """Count the host's memory control groups, with removed ones that still have pages; 0 where it is not shown."""
    for line in host_text.said("/proc/cgroups").splitlines():
        words = line.split()
        if words[0] == "memory":
            return int(words[2])
    return 0


def objects_of_1k() -> int:
    """Count the kernel's objects of 1 KiB that are in use and charged to nobody; 0 where it is not shown."""
    caches = _SLAB_CACHE.findall(host_text.said("/proc/slabinfo"))
    return sum(int(used) for name, used, *_ in caches if re.fullmatch(r"kmalloc-(rnd-\d+-)?1k", name))


def filesystems(pids: Iterable[int]) -> set[str]:
    """Return the numbers of the devices that are mounted where these processes are, each a filesystem of its own."""
    found: set[str] = set()
    seen = set()
    for pid in pids:
        namespace = process_table.mount_namespace(pid)
        if namespace not in seen:
            seen.add(namespace)
            found |= {words[2] for line in _lines(f"/proc/{pid}/mountinfo") if len(words := line.split(" ", 3)) > 3}
    return found


def tables_a_group(name: str, least: int) -> int:
    """Measure how many tables of 1 KiB the kernel makes for a memory control group, one for every 64 filesystems.

    ``name``: tare's group below which empty ones are made for it. ``least``: tables for the filesystems that there are
    now; the kernel never makes fewer than it once did. That many are assumed where no groups can be made, or their
    objects are not shown. 0 before Linux 6.7, which has other tables.
    """
    if _kernel() < (6, 7):
        return 0
    before = objects_of_1k()
    with cgroup.empty_groups(name, _EMPTY_GROUPS) as made:
        measured = round((objects_of_1k() - before) / made) if made and before else 0
    return max(measured, least)


def _kernel() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])


def nodes() -> int:
    """Count NUMA nodes that have memory."""
    return max(1, len(cpulist.parse(host_text.said("/sys/devices/system/node/has_memory"))))


def disk(folder: Path) -> Ceiling:
    """Bytes of the filesystem that a folder is on."""
    found = os.statvfs(folder)
    used = found.f_blocks - found.f_bfree
    return Ceiling(used * found.f_frsize, (used + found.f_bavail) * found.f_frsize)


def raise_own_files() -> None:
    """Let this process open as many files as its hard limit allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _lines(path: str) -> list[str]:
    return host_text.said(path).splitlines()


def _number(path: str) -> int:
    words = host_text.said(path).split()
    return int(words[0]) if words and words[0].isdigit() else 0
