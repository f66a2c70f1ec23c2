"""Sibling control groups of equal weight, one for each instance, on cgroup v1, v2 and hybrid hosts.

Each instance gets ``PARENT/ID`` with the same CPU set, memory limit and the default weight. All of its processes run in
child groups below: ``tool`` for the runtime's own command, and the groups that the platform makes. So limits and CPU
accounting cover the whole platform, and no platform gains by its place in the tree (docs/method.md, Same bits).

If systemd manages the groups, each is a systemd unit with a part that is delegated to tare (`tare.host.systemd`).
Without root, the tree is the one delegated to the user. Without delegation, an instance's processes are those of a
process namespace of its own (`Group.surroundings`): they can be found and killed, but not limited or accounted.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostError
from tare.host import cgroup_tree, own_namespaces, systemd
from tare.host.cgroup_files import (
    MemoryKills,
    oom_kills,
    parse_cpu_stat,
    parse_kernel_bytes,
    parse_memory_events,
    parse_memory_stat,
    parse_object_bytes,
    parse_pids_events,
    parse_shared_memory,
    parse_throttled,
)
from tare.host.cgroup_tree import UNLIMITED
from tare.host.kernel import cpulist, host_text, mounts, process_table
from tare.host.kernel.owner import Owner
from tare.model import Resources
from tare.timeouts import until

#: The fix for a user without groups.
DELEGATE = "log in as this user by ssh or at a console (su and sudo stay in another's session), or run tare as root"
#: The fix for a user whose groups have no CPUs of their own.
DELEGATE_CPUSET = "systemctl edit user@.service: [Service] Delegate=cpu cpuset memory pids; or run tare as root"
#: The controllers that tare needs.
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
#: The customary mount point of the hierarchies.
_MOUNTS = Path("/sys/fs/cgroup")
#: The controller that limits a group's number of processes. A host without it has this limit for no platform.
PIDS = "pids"
#: A limit of swap: `Group.limits`.
SWAP = "swap"
#: The limit of memory and swap together, on v1. A kernel without swap accounting lacks it.
_BOTH = "memory.memsw.limit_in_bytes"
#: v1 writes more bytes than this if there is no limit: the greatest number of pages.
_V1_LIMITED = 1 << 62
#: The kernel charges memory in steps of this many bytes (64 pages): a group this close to its limit has reached it.
CHARGED_AT_ONCE = 64 * 4096
#: Period of a CPU quota: the kernel's own default, and Docker's.
PERIOD_US = 100_000
#: After this time, the kernel has summed the counters of all CPUs (mm/memcontrol.c: every 2 s).
COUNTED_S = 2.5
#: A killed process first finishes its current write, and only then frees a deleted file: gigabytes, on a busy disk.
_KILL_LIMIT_S = 30.0
#: For an engine that requests groups from systemd, on a host with v1's.
NOT_SYSTEMDS = "it has its control groups made by systemd, which tare can join on a host with cgroup v2 alone"
NOT_SYSTEMDS_FIX = "boot with systemd.unified_cgroup_hierarchy=1, or set the engine's cgroup driver to cgroupfs"


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """The host's control group hierarchies. ``v1`` maps a controller to its mount; ``v2`` is the unified hierarchy."""

    v1: Mapping[str, Path]
    v2: Path | None
    #: All mounted hierarchies, named ones included, each once. An instance is in its group in all of them, so that all
    #: groups that root in a sandbox makes are below it, where `destroy` finds them.
    mounted: tuple[Path, ...]

    @property
    def unified(self) -> bool:
        """True if limits are set by the v2 hierarchy (otherwise by v1, or v1 of a hybrid host)."""
        return "cpu" not in self.v1

    @property
    def none(self) -> bool:
        """True if no groups can be made, because none are delegated to this user."""
        return self.unified and self.v2 is None

    @property
    def pins(self) -> bool:
        """True if groups can be restricted to CPUs; systemd delegates no cpuset controller by default."""
        return not self.none and (not self.unified or "cpuset" in self.controllers())

    def controllers(self) -> list[str]:
        """Return the v2 controllers that are available to groups: all for root, the delegated ones for a user."""
        assert self.v2 is not None
        offered = host_text.said(self.v2 / "cgroup.controllers").split()
        if not own_namespaces.inside():
            return ["cpu", "cpuset", "memory", *([PIDS] if PIDS in offered else [])]
        return [name for name in (*CONTROLLERS, PIDS) if name in offered]


def quota_us(cpus: float) -> int:
    """Return the CPU time of this many CPUs in each `PERIOD_US`."""
    return round(cpus * PERIOD_US)


def hierarchies_among(mounted: Iterable[mounts.Mount]) -> Hierarchies:
    """Return the hierarchies among all mounts."""
    v1: dict[str, Path] = {}
    v2: Path | None = None
    roots: dict[str, Path] = {}
    for mount in mounted:
        if mount.kind not in {"cgroup", "cgroup2"}:
            continue
        root = roots.setdefault(mount.device, Path(mount.point))
        if mount.kind == "cgroup2":
            v2 = root
        v1 |= {name: root for name in mount.super_options if mount.kind == "cgroup" and name in {*CONTROLLERS, PIDS}}
    return Hierarchies(v1, v2, tuple(roots.values()))


@functools.cache
def hierarchies() -> Hierarchies:
    """Return the host's control group hierarchies. Raises `HostError` if a required one is not mounted."""
    tree = hierarchies_among(mounts.table())
    if own_namespaces.inside():
        return delegated(tree)
    missing = [name for name in CONTROLLERS if name not in tree.v1]
    if tree.unified:
        if tree.v2 is None:
            raise _none_mounted()
    elif missing:
        raise HostError(
            f"the cgroup controller {missing[0]} is not mounted",
            fix=f"mount -t cgroup -o {missing[0]} cgroup /sys/fs/cgroup/{missing[0]}",
        )
    return tree


def _none_mounted() -> HostError:
    """Return the error for no mounted hierarchy. The fix is for v1 if the kernel has bound controllers to it."""
    if not _MOUNTS.is_dir():
        return HostError("/sys is not mounted here, and no cgroup hierarchy", fix="mount -t sysfs sysfs /sys")
    what = "no cgroup hierarchy is mounted"
    rows = (line.split() for line in host_text.said("/proc/cgroups").splitlines()[1:])
    if not any(name == "memory" and hierarchy != "0" for name, hierarchy, *_ in rows):
        return HostError(what, fix=f"mount -t cgroup2 cgroup2 {_MOUNTS}")
    names = " ".join(CONTROLLERS)
    return HostError(
        what,
        fix=f"mount -t tmpfs cgroup {_MOUNTS}; for name in {names}; do mkdir {_MOUNTS}/$name;"
        f" mount -t cgroup -o $name cgroup {_MOUNTS}/$name; done",
    )


def kept_by_systemd() -> bool:
    """Return True if systemd manages tare's groups: it runs, there is only v2's hierarchy, and tare is root."""
    tree = hierarchies()
    return tree.unified and systemd.BOOTED.is_dir() and not own_namespaces.inside()


def path_of(name: str) -> str:
    """Return the path of tare's group below each hierarchy's root, from its name, such as ``tare/ab12cx3``."""
    return systemd.path_of(name) if kept_by_systemd() else name


def named(name: str) -> Group:
    """Return tare's group with this name (see `path_of`)."""
    return Group(path_of(name))


def tops() -> list[Group]:
    """Return the groups directly below the root of the hierarchy of memory; none where there is none."""
    tree = hierarchies()
    root = None if tree.none else tree.v2 if tree.unified else tree.v1.get("memory")
    return [] if root is None else [Group(folder.name) for folder in sorted(root.iterdir()) if folder.is_dir()]


@contextlib.contextmanager
def empty_groups(name: str, count: int) -> Iterator[int]:
    """Make groups without processes below tare's group of this name, in the hierarchy of memory; yield how many.

    They are removed afterwards, and by the group's remover. Where systemd manages the groups there are none.
    """
    tree = hierarchies()
    root = None if tree.none or kept_by_systemd() else tree.v2 if tree.unified else tree.v1.get("memory")
    folders = [] if root is None else [root / name / f"empty{number}" for number in range(count)]
    made = []
    try:
        with contextlib.suppress(OSError):  # as many as the kernel lets there be
            for folder in folders:
                folder.mkdir()
                made.append(folder)
        yield len(made)
    finally:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def delegated(tree: Hierarchies) -> Hierarchies:
    """Return the part of the hierarchies in which this user may make groups with limits and accounting, if any."""

    def ours(root: Path | None) -> bool:
        return root is not None and os.access(root / "cgroup.procs", os.W_OK)

    if tree.unified and ours(tree.v2) and {"cpu", "memory"} <= set(tree.controllers()):
        assert tree.v2 is not None
        return Hierarchies({}, tree.v2, (tree.v2,))
    if not tree.unified and all(ours(tree.v1.get(name)) for name in CONTROLLERS):
        v1 = {name: root for name, root in tree.v1.items() if ours(root)}
        return Hierarchies(v1, None, tuple(root for root in tree.mounted if ours(root)))
    return Hierarchies({}, None, ())


#: Without groups: the first process of each group's process namespace, by the group's path.
_first_processes: dict[str, list[Owner]] = {}


class Group:
    """The control group of one instance."""

    def __init__(self, path: str) -> None:
        """Refer to a group. ``path``: below each hierarchy's root (`path_of`), like ``tare/ab12cx3``; "": the host."""
        self.path = path
        #: The group below which groups may be made: the group itself, or the part that systemd delegated.
        self.inner = systemd.scope_of(path)
        #: The slice for systemd units that an engine requests; None if systemd does not manage the groups.
        self.slice = systemd.slice_of(path)
        self._tree = hierarchies()
        self._cpus: tuple[int, ...] = ()
        self._files: dict[str, int] = {}  # Descriptors of files that are read repeatedly.

    def create(self, resources: Resources) -> None:
        """Create it with its limits. Add it to the journal first."""
        self._cpus = tuple(resources.cpus)
        if self._tree.none:
            return
        if self.slice is not None:
            self._create_units(resources)
        elif self._tree.unified:
            self._create_v2(resources)
        else:
            self._create_v1(resources)

    def parent_for(self, manager: str) -> str:
        """Return the parent of a container's group for an engine, by the manager of its groups.

        ``manager``: ``systemd`` (the parent is a slice) or ``cgroupfs`` (it is a path), as in `docker info` and `podman
        info`. Raises `HostError` if systemd would make the groups but does not manage this host's.
        """
        if manager != "systemd":
            return f"/{self.inner}"
        if self.slice is None:
            raise HostError(NOT_SYSTEMDS, fix=NOT_SYSTEMDS_FIX)
        return self.slice

    def leaf(self, name: str) -> list[Path]:
        """Create a child group in every hierarchy, if missing. Return the ``cgroup.procs`` files to enter it by."""
        if self._tree.none:
            return []
        folders = [root / self.inner / name for root in self._tree.mounted]
        for folder in folders:
            folder.mkdir(exist_ok=True, parents=True)
            if not self._tree.unified and folder == self._tree.v1["cpuset"] / self.inner / name:
                _copy(folder.parent, folder, ("cpuset.cpus", "cpuset.mems"))
        return [folder / "cgroup.procs" for folder in folders]

    def child(self, name: str) -> Group:
        """Refer to a child group that `leaf` makes: below the group itself, or the part that systemd delegated."""
        return Group(f"{self.inner}/{name}")

    @property
    def accounts(self) -> bool:
        """Return True if its CPU time and memory can be read."""
        return not self._tree.none

    def surroundings(self) -> list[str]:
        """Return a command prefix that replaces the host's control groups if there are none (`entered_by`)."""
        pinned = [] if self._tree.pins or not self._cpus else ["taskset", "--cpu-list", cpulist.written(self._cpus)]
        # bwrap looks up its child by its number in the namespace, so the namespace needs a /proc of its own.
        apart = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"] if self._tree.none else []
        return [*pinned, *apart]

    def entered_by(self, pid: int) -> None:
        """Register a process that was started in the `surroundings`; it may be in no other group."""
        if self._tree.none:
            _first_processes.setdefault(self.path, []).append(Owner.of(pid))

    def cpu_ns(self) -> int:
        """Return the CPU time in ns that all of its processes, including dead ones, have used so far."""
        text = self._read("cpuacct", "cpu.stat" if self._tree.unified else "cpuacct.usage")
        return parse_cpu_stat(text) if self._tree.unified else int(text)

    def cpu_ns_by_cpu(self) -> list[int] | None:
        """Return the CPU time of `cpu_ns` by host CPU, from number 0; None if it is not counted by CPU (cgroup v2)."""
        if self._tree.unified:
            return None
        return [int(word) for word in self._read("cpuacct", "cpuacct.usage_percpu").split()]

    def throttled(self) -> tuple[int, int] | None:
        """Return the periods in which its CPU quota was used up, and the ns throttled; None if not counted."""
        return parse_throttled(self._read("cpu", "cpu.stat"))

    def memory_bytes(self) -> int:
        """Return the memory charged to it and all below: pages in use, page cache, the kernel's own for them."""
        return int(self._read("memory", "memory.current" if self._tree.unified else "memory.usage_in_bytes"))

    def used_bytes(self) -> int:
        """Return `memory_bytes` of a group idle for `COUNTED_S`, without memory that the kernel charged in advance.

        The kernel charges 64 pages at a time, and keeps the rest of them for each CPU until another group needs the
        place: more than a small container uses. Its count page by page is exact, but late.
        """
        exact = parse_memory_stat(self._read("memory", "memory.stat"), unified=self._tree.unified)
        if exact is None:
            return self.memory_bytes()
        if self._tree.unified:
            return exact
        try:
            return exact + int(self._read("memory", "memory.kmem.usage_in_bytes"))
        except FileNotFoundError:  # The kernel does not charge its own memory.
            return exact

    def kernel_bytes(self) -> int:
        """Return the kernel's own memory for it and all below: page tables, stacks, descriptors, sockets."""
        if not self._tree.unified:
            try:
                return int(self._read("memory", "memory.kmem.usage_in_bytes"))
            except FileNotFoundError:  # The kernel does not charge its own memory.
                return 0
        return parse_kernel_bytes(self._counted())

    def object_bytes(self) -> int:
        """Return the kernel's objects for it and all below that cannot be reclaimed; 0 where v1 does not tell them."""
        if not self._tree.unified:
            return 0
        return parse_object_bytes(self._counted())

    def shared_memory_bytes(self) -> int:
        """Return its memory, and that of all below, in files that exist only in memory, mapped or not."""
        return parse_shared_memory(self._counted(), unified=self._tree.unified)

    def counts_late(self) -> bool:
        """Return True if its memory is exact to the page only after it was idle for `COUNTED_S`.

        Up to Linux 6.15, reading another controller's figures makes the kernel sum those of memory too.
        """
        return self._tree.unified and _kernel() >= (6, 16)

    def _counted(self) -> bytes:
        """Return its ``memory.stat``, summed as of now if `counts_late` is false."""
        if self._tree.unified:
            self._read("cpuacct", "cpu.stat")
        return self._read("memory", "memory.stat")

    def memory_kills(self) -> MemoryKills | None:
        """Return the kernel's kills in it for lack of memory so far; None if there are none, or they are unknown.

        Cgroup v1 forgets the kills of a child group that has been removed.
        """
        if self._tree.none:
            return None
        if self._tree.unified:
            assert self._tree.v2 is not None
            folder = self._tree.v2 / self.path
            events, limit = ((folder / name).read_bytes() for name in ("memory.events", "memory.max"))
            return parse_memory_events(events, limit)
        folder = self._tree.v1["memory"] / self.path
        controls: list[bytes] = []
        at_limit = False

        def read(group: int) -> None:
            nonlocal at_limit
            with cgroup_tree.unless_removed():
                controls.append(cgroup_tree.contents(group, "memory.oom_control"))
                # Not its `memory.failcnt`: a limit of memory and swap together, of the same size, is reached first, and
                # not all kernels count that.
                most, limit = (
                    int(cgroup_tree.contents(group, f"memory.{name}_in_bytes")) for name in ("max_usage", "limit")
                )
                at_limit |= most + CHARGED_AT_ONCE > limit

        cgroup_tree.walk(folder, read, lambda *_: None)
        limit_bytes = int((folder / "memory.limit_in_bytes").read_bytes())
        return MemoryKills.known(sum(map(oom_kills, controls)), at_limit=at_limit, limit_bytes=limit_bytes)

    def bound(self, pids: int) -> None:
        """Limit the processes and threads of each group directly below, as far as it has no limit of its own.

        So a guest leaves what the group has beyond that to the helpers beside it (`Platform.helper_pids`).
        """
        root = self._root_of(PIDS)
        for file in () if root is None else sorted((root / self.inner).glob("*/pids.max")):
            with contextlib.suppress(FileNotFoundError):  # A group that has been removed meanwhile.
                if host_text.read(file).strip() == UNLIMITED:
                    file.write_text(str(pids))

    def refused_processes(self, allowed: int | None = None) -> int:
        """Return how often a process or thread was refused at its limit, or at those of groups below, as far as known.

        ``allowed``: what a guest may have in a group below. Cgroup v1, and v2 before Linux 6.11, forget the refusals of
        a child group that has been removed; the peak of the group itself (Linux 6.11) then shows at least one: it has
        reached its own limit, or, with helpers, exceeded that of the guest.
        """
        refused = 0

        def read(group: int) -> None:
            nonlocal refused
            with cgroup_tree.unless_removed():
                refused += parse_pids_events(cgroup_tree.contents(group, "pids.events"))

        root = self._root_of(PIDS)
        if root is not None:
            cgroup_tree.walk(root / self.path, read, lambda *_: None)
        limit, most = self._limit(PIDS, "pids.max"), self._limit(PIDS, "pids.peak")
        reached = most is not None and (most == limit or (allowed is not None and most > allowed))
        return max(refused, int(reached))

    def limits(self) -> dict[str, int | None]:
        """Return the limits that the kernel enforces, read back: `PIDS`, and bytes of `SWAP`; None: no limit.

        That of processes is the lowest one of the group and those below: a guest's group leaves room for its helpers.
        """
        return {PIDS: self._lowest_of_pids(), SWAP: self._swap_limit()}

    def pids(self) -> list[int]:
        """Return all processes in it and below, except the keeper of its scope."""
        if self._tree.none:
            return _family(self.path)
        root = self._tree.v2 if self._tree.unified else self._tree.v1["cpu"]
        assert root is not None
        keeper = cgroup_tree.pids([root / self.inner / systemd.KEEPER]) if self.slice is not None else set()
        return sorted(cgroup_tree.pids([root / self.path]) - keeper)

    def kill(self) -> None:
        """Kill all processes in it and below; the group itself stays. Raises `HostError` if some cannot be killed."""
        deadline = until(_KILL_LIMIT_S)
        folders = [root / self.path for root in self._tree.mounted]
        while pids := self.pids():
            _kill(pids, folders)
            if time.monotonic() > deadline:
                raise HostError(f"processes {pids} of the control group {self.path} cannot be killed")
            time.sleep(0.005)

    def holds(self, pid: int) -> bool:
        """Return True if a process is in it or below, for every controller of tare's. Raises `OSError` if it ended."""
        within = 0
        for _, names, path in _memberships(pid):
            ours = (names == "") if self._tree.unified else bool(set(names.split(",")) & self._tree.v1.keys())
            if ours and not f"{path}/".startswith(f"/{self.path}/"):
                return False
            within += ours
        return within > 0

    def close(self) -> None:
        """Close the accounting files; the group stays."""
        while self._files:
            os.close(self._files.popitem()[1])

    def file(self, controller: str, name: str) -> Path:
        """Return the path of one of its files; on v2, the files of all controllers are in one folder.

        Raises `HostError` if there are no groups.
        """
        if self._tree.none:
            raise HostError("no control groups are delegated to this user: nothing is accounted", fix=DELEGATE)
        root = self._root_of(controller)
        assert root is not None
        return root / self.path / name

    @property
    def unified(self) -> bool:
        """True if its limits and accounting are those of cgroup v2."""
        return self._tree.unified

    def _read(self, controller: str, name: str) -> bytes:
        if name not in self._files:
            self._files[name] = os.open(self.file(controller, name), os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._files[name], 1 << 16, 0)

    def _root_of(self, controller: str) -> Path | None:
        """Return the hierarchy of a controller; None if this host, or this user, has no hierarchy with it."""
        return self._tree.v2 if self._tree.unified else self._tree.v1.get(controller)

    def _limit(self, controller: str, name: str) -> int | None:
        root = self._root_of(controller)
        try:
            words = host_text.read(root / self.path / name).strip() if root is not None else UNLIMITED
        except FileNotFoundError:
            words = UNLIMITED
        return None if words == UNLIMITED else int(words)

    def _lowest_of_pids(self) -> int | None:
        limits: list[bytes] = []

        def read(group: int) -> None:
            with cgroup_tree.unless_removed():
                limits.append(cgroup_tree.contents(group, "pids.max").strip())

        root = self._root_of(PIDS)
        if root is not None:
            cgroup_tree.walk(root / self.path, read, lambda *_: None)
        return min((int(words) for words in limits if words != UNLIMITED.encode()), default=None)

    def _swap_limit(self) -> int | None:
        if self._tree.unified:
            return self._limit("memory", "memory.swap.max")
        both, memory = self._limit("memory", _BOTH), self._limit("memory", "memory.limit_in_bytes")
        return None if both is None or memory is None or both > _V1_LIMITED else both - memory

    def _create_v1(self, resources: Resources) -> None:
        for root in sorted(set(self._tree.v1.values())):
            for folder in _ancestry(root, self.path):
                folder.mkdir(exist_ok=True)
                if root == self._tree.v1["cpuset"]:
                    _copy(folder.parent, folder, ("cpuset.cpus", "cpuset.mems"))
        cpuset = self._tree.v1["cpuset"] / self.path
        (cpuset / "cpuset.cpus").write_text(cpulist.written(resources.cpus))
        # A cpuset without CPUs accepts no process, and not every runtime (LXC) fills those that it makes below.
        (cpuset / "cgroup.clone_children").write_text("1")
        memory = self._tree.v1["memory"] / self.path
        (memory / "memory.limit_in_bytes").write_text(str(resources.memory_bytes))
        _write_if_there(memory / _BOTH, resources.memory_bytes)
        if PIDS in self._tree.v1:
            (self._tree.v1[PIDS] / self.path / "pids.max").write_text(str(resources.pids or UNLIMITED))
        if resources.cpu_quota is not None:
            cpu = self._tree.v1["cpu"] / self.path
            (cpu / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (cpu / "cpu.cfs_quota_us").write_text(str(quota_us(resources.cpu_quota)))

    def _create_units(self, resources: Resources) -> None:
        assert self._tree.v2 is not None
        systemd.make_slice(self._tree.v2, self.path, resources)
        systemd.make_scope(self._tree.v2, self.path)
        self._pass_on(self._tree.v2 / self.inner)

    def _create_v2(self, resources: Resources) -> None:
        assert self._tree.v2 is not None
        for folder in _ancestry(self._tree.v2, self.path):
            self._pass_on(folder.parent)
            folder.mkdir(exist_ok=True)
        folder = self._tree.v2 / self.path
        self._pass_on(folder)
        if self._tree.pins:
            (folder / "cpuset.cpus").write_text(cpulist.written(resources.cpus))
        (folder / "memory.max").write_text(str(resources.memory_bytes))
        _write_if_there(folder / "memory.swap.max", 0)
        _write_if_there(folder / "pids.max", resources.pids or UNLIMITED)
        if resources.cpu_quota is not None:
            (folder / "cpu.max").write_text(f"{quota_us(resources.cpu_quota)} {PERIOD_US}")

    def _pass_on(self, folder: Path) -> None:
        """Enable the controllers for the groups below a v2 group."""
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in self._tree.controllers()))


def _kernel() -> tuple[int, ...]:
    """Return the first two numbers of the kernel's version."""
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])


def usage_of(pid: int) -> Group | None:
    """Return the group of a foreign process (a daemon), for reading; None if that is the whole machine."""
    try:
        memberships = list(_memberships(pid))
    except OSError:
        return None
    tree = hierarchies()
    for _, names, path in memberships:
        if (tree.unified and names == "") or (not tree.unified and "cpuacct" in names.split(",")):
            return Group(path.strip("/")) if path != "/" else None
    return None


def _memberships(pid: int) -> Iterator[list[str]]:
    """Yield the fields of ``/proc/PID/cgroup``: hierarchy, controllers, path. A path has any byte but a line feed."""
    for line in filter(None, Path(f"/proc/{pid}/cgroup").read_bytes().split(b"\n")):
        yield os.fsdecode(line).split(":", 2)


def usage_of_all(names: Collection[str]) -> list[Group]:
    """Return the groups of the processes with these names (daemons), each once, as from `usage_of`."""
    groups = filter(None, map(usage_of, process_table.named(names)))
    return list({group.path: group for group in groups}.values())


def reserve(path: str) -> None:
    """Create a v2 group without limits, for a caller that needs it before it is set up."""
    root = hierarchies().v2
    assert root is not None
    if systemd.slice_of(path) is not None:
        systemd.make_slice(root, path)
    else:
        (root / path).mkdir(parents=True)


def give_up(path: str) -> None:
    """Remove a reserved group that was not set up in the meantime. Raises `HostError`."""
    root = hierarchies().v2
    assert root is not None
    if systemd.slice_of(path) is None:
        with contextlib.suppress(OSError):  # The group is in use, or already removed.
            (root / path).rmdir()
    elif not (root / systemd.scope_of(path)).is_dir():
        systemd.stop(path)


def let_go(path: str) -> None:
    """Kill all processes of a group in which root of a sandbox blocks kills, so that engines can remove it.

    Raises `HostError` if some cannot be killed. Does nothing if the group does not exist.
    """
    if any(cgroup_tree.held_back(root / path) for root in hierarchies().mounted):
        Group(path).kill()


def destroy(path: str) -> None:
    """Kill all processes in the group and below, in every hierarchy, and remove it, if it exists.

    Raises `HostError` if processes remain in it.
    """
    unit = systemd.slice_of(path) if kept_by_systemd() else None
    deadline = until(_KILL_LIMIT_S)
    if hierarchies().none:
        Group(path).kill()
    folders = [root / path for root in hierarchies().mounted if (root / path).is_dir()]
    while folders:
        _kill(cgroup_tree.pids(folders), folders)
        # Otherwise systemd would ask the processes to end, and wait for 90 s.
        if unit is not None and not cgroup_tree.pids(folders):
            for folder in folders:
                cgroup_tree.empty(folder / Path(systemd.scope_of(path)).name)
            systemd.stop(path)
        for folder in folders if unit is None else ():
            cgroup_tree.remove_tree(folder)
        folders = [folder for folder in folders if folder.is_dir()]
        if folders and time.monotonic() > deadline:
            raise HostError(
                f"the control group {folders[0]} cannot be removed: processes {cgroup_tree.pids(folders)} stay in it"
            )
        if folders:
            time.sleep(0.005)


def _kill(pids: Collection[int], folders: Iterable[Path]) -> None:
    """Send SIGKILL to processes, and remove the blocks by which root in a sandbox makes groups ignore it.

    In this order, so that a released process ends before it runs anything. ``folders``: the groups' tops.
    """
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if pids:
        for folder in folders:
            cgroup_tree.walk(folder, cgroup_tree.release, lambda *_: None)


def _family(path: str) -> list[int]:
    """Return a group's processes if there are no groups: all descendants of its namespaces' first processes.

    A process whose parent dies in such a namespace gets the first process as its parent, so none is missed.
    """
    first: set[int] = set()
    for group, owners in list(_first_processes.items()):
        if f"{group}/".startswith(f"{path}/"):
            _first_processes[group] = [owner for owner in owners if not owner.ended()]
            first |= {owner.pid for owner in _first_processes[group]}
    return process_table.descendants(first) if first else []


def _write_if_there(file: Path, value: int | str) -> None:
    """Set a limit, unless the kernel lacks its kind: it has no swap accounting, or its ``pids`` is off."""
    if file.exists():
        file.write_text(str(value))


def _ancestry(root: Path, path: str) -> list[Path]:
    parts = path.split("/")
    return [root.joinpath(*parts[: count + 1]) for count in range(len(parts))]


def _copy(source: Path, target: Path, names: Iterable[str]) -> None:
    for name in names:
        if not host_text.read(target / name).strip():
            (target / name).write_text(host_text.read(source / name))
