#!/usr/bin/env python3
"""Measure what a node's memory lost to the instances of `tare capacity`, and their CPU time, without any code of tare.

    bench/node_memory.py -o FILE.json tare capacity -p runc --fill ...        watches while the command runs
    bench/node_memory.py --compare FILE.json REPORT.json                      beside what `tare report --json` reserves

This program imports nothing of tare. It reads /proc/meminfo, /proc/slabinfo, /proc/zoneinfo, smaps_rollup and status of
each process, and the control groups below `tare`, as an operator's own script would. A node's loss is the fall of what
is available between the last moment without an instance and the moments with the most of them. What tare itself and
its waiting clients grew by is taken off, as no kubelet would run them; other processes' growth is taken off too.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

EVERY_S = 1.0
#: Groups of clients that wait for tare alone: no kubelet runs them.
CLIENTS = {"client", "tool"}
STACK = 16 << 10
#: Moments without an instance that a fill is compared with: the last of them before it.
IDLE = 5
#: Of a mount on Linux 6.18, with its connection to a mount point, its name and its counters of each CPU.
MOUNT = 530
#: Name, objects in use, objects, objects a slab, pages a slab.
SLAB = re.compile(r"^(\S.*?) +(\d+) +(\d+) +\d+ +(\d+) +(\d+) : ", re.MULTILINE)
MIB = 2**20


def read(path: Path | str) -> str:
    """Return the text of a file of the kernel's; nothing if it has gone."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def groups_root(controller: str) -> Path:
    """Where the control groups below `tare` are, by the hierarchy of a controller or the unified one."""
    for line in read("/proc/self/mountinfo").splitlines():
        words = line.split()
        kind = words[words.index("-") + 1]
        if kind == "cgroup2" and "memory" in read(f"{words[4]}/cgroup.controllers").split():
            return Path(words[4])
        if kind == "cgroup" and controller in words[-1].split(","):
            return Path(words[4])
    sys.exit(f"no control groups of {controller}")


def available() -> int:
    """Bytes of MemAvailable, of the room in the kernel's slabs that no object is in, and of CPUs' lists of free pages.

    The next objects go into that room, and a kernel since 6.7 moves hundreds of MiB in and out of these lists.
    """
    found = re.search(r"^MemAvailable: +(\d+) kB", read("/proc/meminfo"), re.MULTILINE)
    assert found, "Linux 3.14 or newer"
    free = 0.0
    for name, *numbers in SLAB.findall(read("/proc/slabinfo")):
        active, objects, a_slab, pages = map(int, numbers)
        if name == "lsm_inode_cache":  # which the kernel frees with the inodes, as it frees their cache
            free += objects / a_slab * pages
        elif a_slab and read(f"/sys/kernel/slab/{name}/reclaim_account").strip() != "1":
            free += (objects - active) / a_slab * pages
    lists = re.findall(r"^ +count: +(\d+)$", read("/proc/zoneinfo"), re.MULTILINE)
    return int(found[1]) * 1024 + round((free + sum(map(int, lists))) * os.sysconf("SC_PAGE_SIZE"))


def pages_of(pids: set[int], groups: tuple[Path, ...] = ()) -> int:
    """Return the bytes of processes that no file backs, with their page tables and their threads' stacks in the kernel.

    For files in memory it takes what their groups are charged, if that is more: no process has to map them.
    """
    sizes = {"Anon": 0, "Shmem": 0}
    for pid in pids:
        for kind, kib in re.findall(r"^Pss_(Anon|Shmem): +(\d+) kB", read(f"/proc/{pid}/smaps_rollup"), re.MULTILINE):
            sizes[kind] += 1024 * int(kib)
    charged = [re.findall(r"^(?:total_)?shmem (\d+)$", read(group / "memory.stat"), re.MULTILINE) for group in groups]
    in_groups = sum(max(map(int, found), default=0) for found in charged)  # of v1 the total has those below, too
    return sizes["Anon"] + max(sizes["Shmem"], in_groups) + sum(map(kernel_of, pids))


def namespace(pid: int) -> str:
    """The namespace of mounts that a process is in; "" if it has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    except OSError:
        return ""


def kernel_of(pid: int) -> int:
    """Page tables of a process, and the kernel's stacks of its threads."""
    status = dict(re.findall(r"^(VmPTE|Threads):\s+(\d+)", read(f"/proc/{pid}/status"), re.MULTILINE))
    return 1024 * int(status.get("VmPTE", 0)) + STACK * int(status.get("Threads", 0))


class Clients:
    """What clients that wait for tare alone have of the kernel's memory: no kubelet runs them."""

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self.objects = 0
        self.apart = 0  # with mounts of their own
        self.host_mounts = host_mounts()  # before the first of them

    def begin(self) -> None:
        """Look at all of them again."""
        self.pids, self.objects, self.apart = set(), 0, 0
        self.ours = namespace(os.getpid())

    def add(self, group: Path, pids: set[int]) -> None:
        """Add those in a group."""
        self.pids |= pids
        self.objects += charged_objects(group, pids)
        self.apart += namespace(min(pids)) not in {"", self.ours}

    def bytes(self) -> int:
        """Objects that are charged to them, and mounts of later instances, which are charged to who made these first.

        The kernel copies each mount of the host into every namespace that there is already: of two clients one has what
        belongs to the other.
        """
        later = host_mounts() - self.host_mounts
        return self.objects + MOUNT * max(0, later) * max(0, self.apart - 1) // 2


def host_mounts() -> int:
    """How many mounts this namespace has."""
    return read("/proc/self/mountinfo").count("\n")


def below(root: Path, clients: Clients) -> dict[str, set[int]]:
    """Processes by instance; and what the clients have."""
    instances: dict[str, set[int]] = {}
    clients.begin()
    for top in (root / "tare", root / "tare.slice"):
        for folder, _, _ in os.walk(top):  # which takes no notice of groups that end meanwhile
            names = Path(folder).relative_to(top).parts
            pids = {int(word) for word in read(f"{folder}/cgroup.procs").split()}
            if not names or not pids:
                continue
            if names[0] in CLIENTS or names[-1] in CLIENTS:
                clients.add(Path(folder), pids)
            else:
                instances.setdefault(names[0], set()).update(pids)
    return instances


def groups_of(root: Path, name: str) -> tuple[Path, ...]:
    """Where an instance's control group may be."""
    return root / "tare" / name, root / "tare.slice" / name


def cpu_s(root: Path, instances: dict[str, set[int]]) -> float:
    """Seconds of CPU time of the instances' groups, since they were made, without their clients'."""
    spent = 0.0
    for name in instances:
        for group in groups_of(root, name):
            spent += cpu_of(group) - sum(cpu_of(group / client) for client in CLIENTS)
    return spent


def cpu_of(group: Path) -> float:
    """Seconds of CPU time of a group; nothing if it has gone."""
    in_v1 = read(group / "cpuacct.usage").strip()
    in_v2 = re.search(r"^usage_usec (\d+)$", read(group / "cpu.stat"), re.MULTILINE)
    return int(in_v1) / 1e9 if in_v1 else int(in_v2[1]) / 1e6 if in_v2 else 0.0


def charged_objects(group: Path, pids: set[int]) -> int:
    """Bytes of the kernel's objects that are charged to a group, without page tables and stacks of its processes."""
    in_v1 = read(group / "memory.kmem.usage_in_bytes").strip()
    in_v2 = re.search(r"^kernel (\d+)$", read(group / "memory.stat"), re.MULTILINE)
    charged = int(in_v1) if in_v1 else int(in_v2[1]) if in_v2 else 0
    return max(0, charged - sum(map(kernel_of, pids)))


def daemons(own: int) -> set[int]:
    """Engines' daemons and their helpers: what a node needs for its instances, though it is in no instance's group."""
    names = {"dockerd", "containerd", "containerd-shim", "conmon", "lxc-monitord", "runsc", "docker-proxy", "lxcfs"}
    found = {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()} - {own}
    return {pid for pid in found if read(f"/proc/{pid}/comm").strip()[:15] in {name[:15] for name in names}}


def sample(own: int, clients: Clients) -> dict[str, float]:
    """The node now: instances, what is available, and what others have: processes, and files that lie in memory."""
    root = groups_root("memory")
    instances = below(root, clients)
    at, spent = time.monotonic(), cpu_s(groups_root("cpuacct"), instances)
    each = [pages_of(pids, groups_of(root, name)) for name, pids in instances.items()]
    of_daemons = daemons(own) - clients.pids - set().union(*instances.values())
    of_instances = sum(each) + pages_of(of_daemons)
    left, meminfo = available(), read("/proc/meminfo")
    parts = ("AnonPages", "Shmem", "PageTables", "SecPageTables", "KernelStack")
    sizes = re.findall(r"^(\w+): +(\d+) kB", meminfo, re.MULTILINE)
    everybody = 1024 * sum(int(kib) for name, kib in sizes if name in parts)
    others = everybody - of_instances + clients.bytes()
    return {
        "at": at,
        "cpu_s": spent,
        "instances": len(instances),
        "available": left,
        "others": others,
        "tail": tail(each),
    }


def tail(each: list[int]) -> float:
    """Return by how many bytes the instance at the 99th percentile exceeds the mean one."""
    if len(each) < 2:
        return 0.0
    return statistics.quantiles(each, n=100, method="inclusive")[98] - statistics.fmean(each)


def watch(out: Path, command: list[str]) -> int:
    """Sample until the command ends."""
    samples, clients = [], Clients()
    running = subprocess.Popen(command)
    while running.poll() is None:
        samples.append(sample(os.getpid(), clients))
        time.sleep(EVERY_S)
    out.write_text(json.dumps({"samples": samples, "fills": fills(samples)}))
    for fill in fills(samples):
        taken = f"{fill['used'] / MIB:.2f} MiB of the node and {1000 * fill['cpu']:.2f} m CPU"
        print(f"{fill['instances']:.0f} instances took {taken}", file=sys.stderr)
    return running.returncode


def fills(samples: list[dict[str, float]]) -> list[dict[str, float]]:
    """Each rise from no instance to the most and back: how many, and what the node had lost.

    Of each instance it is the median of the moments with at least three quarters of the most: others' work moves one.
    Only moments count in which none was being started: as many ran in the moment before.
    """
    rises, rise, empty = [], [], []
    for now in [*samples, {"instances": 0}]:
        if now["instances"]:
            rise.append(now)
            continue
        if rise and empty:
            most = max(held["instances"] for held in rise)
            before = {name: statistics.median(idle[name] for idle in empty[-IDLE:]) for name in ("available", "others")}
            up = rise[: max(at for at, held in enumerate(rise) if held["instances"] == most) + 1]
            still = [now for then, now in itertools.pairwise(up) if then["instances"] == now["instances"]]
            late = [held for held in still if held["instances"] >= 0.75 * most]
            if not late:
                continue
            used = most * statistics.median(lost(before, held) / held["instances"] for held in late)
            beyond = statistics.median(held["tail"] for held in late)
            first, last = (end(held["at"] for held in up if held["instances"] == most) for end in (min, max))
            spent = [held["cpu_s"] for held in up if held["at"] in {first, last}]
            cpu = (spent[-1] - spent[0]) / (last - first) if last > first else 0.0
            rises.append({"instances": most, "used": used, "tail": beyond, "cpu": cpu, "samples": len(late)})
        empty, rise = [*(empty if not rise else []), now], []
    return rises


def lost(before: dict[str, float], held: dict[str, float]) -> float:
    """Bytes that the node lost without the growth of other processes."""
    return before["available"] - held["available"] - (held["others"] - before["others"])


def compare(watched: Path, report: Path) -> None:
    """A line of Markdown a platform: what all reserves together are beside what the node lost, in MiB and m CPU.

    The last share is of what it would have lost if each instance were as large as the one at the 99th percentile.
    """
    seen = json.loads(watched.read_text())["fills"]
    platforms = json.loads(report.read_text())["capacity"]["platforms"]
    for platform in platforms:
        reserve, filled = platform["reserve"], platform["filled"]
        of = [fill for fill in seen if filled and fill["instances"] == platform["most_run"]]
        if not of or reserve is None:
            continue
        count, used = of[-1]["instances"], statistics.fmean(fill["used"] for fill in of)
        at_tail = used + count * statistics.fmean(fill["tail"] for fill in of)
        asked = count * (reserve["memory"] + reserve["workload_memory"])
        above = [f"{100 * (asked / taken - 1):+.1f} %" for taken in (used, at_tail)]
        cpu = statistics.fmean(fill["cpu"] for fill in of)
        cpus = [f"{1000 * of_all:.1f}" for of_all in (cpu, count * reserve["cpu"])]
        cells = (platform["platform"], f"{count:.0f}", f"{used / MIB:.1f}", f"{asked / MIB:.1f}", *above, *cpus)
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--compare"]:
        compare(Path(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1:2] == ["-o"]:
        sys.exit(watch(Path(sys.argv[2]), sys.argv[3:]))
    else:
        sys.exit(__doc__)
