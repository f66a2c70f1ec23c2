"""The host's memory that a running instance takes: its own, without the client that waits for tare alone."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tare.errors import HostError
from tare.host import cgroup
from tare.host.facts import memory
from tare.host.kernel import process_table
from tare.platforms.base import Instance
from tare.workloads.base import MemoryUsage

#: Of a thread on x86-64 and arm64 (THREAD_SIZE, arch/x86/include/asm/page_64_types.h).
STACK = 16 << 10


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages that a running instance has on this host, in bytes, without the client that waits for tare alone."""

    own: int  # of its processes, that no file gives back
    kernel: int  # the kernel's own, charged to it
    pss: int
    group: int  # charged to its control group, page cache included
    client: int  # of the client: pages that no file gives back
    tables: int  # page tables and the kernel's stacks of its processes
    tasks: int  # threads of its processes
    client_slab: int  # the kernel's objects that are charged to the client


def pages(instance: Instance) -> Pages:
    """Return the pages that it has now; its group's may be late by `cgroup.COUNTED_S`.

    Raises `HostError` where this host does not account its work.
    """
    _require_accounted(instance)
    group = instance.spec.group
    with contextlib.ExitStack() as held:
        client = _client(instance, held)
        waiting = [] if client is None else client.pids()
        own = [pid for pid in instance.host_processes() if pid not in set(waiting)]
        resident = memory.resident(own)
        shared, kernel, charged = _charged(group, client, idle=True)
        client_kernel = 0 if client is None else client.kernel_bytes()
    of_client = memory.resident(waiting)
    return Pages(
        own=resident.anonymous + max(resident.shared_memory, shared),
        kernel=kernel,
        pss=resident.pss,
        group=charged,
        client=of_client.anonymous + of_client.shared_memory,
        tables=tables(own),
        tasks=sum(map(process_table.tasks, own)),
        client_slab=max(0, client_kernel - tables(waiting)),
    )


def tables(pids: Iterable[int]) -> int:
    """Page tables of processes and the kernel's stacks of their threads, in bytes."""
    return sum(process_table.page_tables(pid) + STACK * process_table.tasks(pid) for pid in pids)


def client_cpu_ns(instance: Instance) -> int:
    """Return the CPU time in ns of the client that waits for tare alone; 0 without one."""
    with contextlib.ExitStack() as held, contextlib.suppress(OSError):  # it has ended
        client = _client(instance, held)
        return 0 if client is None else client.cpu_ns()
    return 0


def client_has_mounts(instance: Instance) -> bool:
    """Tell whether its client waits in a namespace of mounts of its own."""
    with contextlib.ExitStack() as held:
        client = _client(instance, held)
        waiting = [] if client is None else client.pids()
    ours = process_table.mount_namespace(os.getpid())
    return any(process_table.mount_namespace(pid) not in {None, ours} for pid in waiting)


def objects_elsewhere(known: Iterable[str]) -> int:
    """Sum the kernel's objects, in bytes, that are charged to the host's other groups; 0 on cgroup v1.

    ``known``: paths of groups that have instances or daemons in them.
    """
    ours = {path.partition("/")[0] for path in known}
    total = 0
    for group in cgroup.tops():
        if group.path in ours:
            continue
        with contextlib.suppress(OSError):  # it has ended
            total += group.object_bytes()
        group.close()
    return total


def _require_accounted(instance: Instance) -> None:
    if not instance.accounted:
        raise HostError("its memory cannot be read: it is another machine's, or in no control group")


def read(instance: Instance, *, idle: bool = False) -> MemoryUsage:
    """Return what it takes now. Raises `HostError` where this host does not account its work.

    ``idle``: it has been for `cgroup.COUNTED_S`, so that its group's memory can be told to the page.
    """
    _require_accounted(instance)
    group = instance.spec.group
    if not idle and group.counts_late():
        time.sleep(cgroup.COUNTED_S)
    with contextlib.ExitStack() as held:
        client = _client(instance, held)
        waiting = [] if client is None else client.pids()
        own = [pid for pid in instance.host_processes() if pid not in set(waiting)]
        resident = memory.resident(own)
        shared, kernel, charged = _charged(group, client, idle=idle)
    guest = memory.mapping_bytes(own, instance.guest_bytes) if instance.guest_bytes else None
    return MemoryUsage(
        # What lies in memory files and is mapped nowhere is in the group's count alone, which may be late.
        own=resident.anonymous + max(resident.shared_memory, shared) + kernel,
        group=charged,
        pss=resident.pss,
        host=memory.host_bytes(),
        guest=guest,
        client=memory.resident(waiting).pss if waiting else None,
        daemons=_pss_of(instance.daemons),
    )


def _client(instance: Instance, held: contextlib.ExitStack) -> cgroup.Group | None:
    if not instance.client:
        return None
    client = instance.spec.group.child(instance.client)
    held.callback(client.close)
    return client


def _charged(group: cgroup.Group, client: cgroup.Group | None, *, idle: bool) -> tuple[int, int, int]:
    """Without a client's part, in bytes: files in memory, the kernel's own, and all with the page cache."""
    parts = [
        (part.shared_memory_bytes(), part.kernel_bytes(), part.used_bytes() if idle else part.memory_bytes())
        for part in (group, client)
        if part is not None
    ]
    whole, clients = parts[0], parts[1] if len(parts) > 1 else (0, 0, 0)
    return (whole[0] - clients[0], whole[1] - clients[1], whole[2] - clients[2])


def _pss_of(daemons: Sequence[cgroup.Group]) -> int | None:
    """PSS of the shared daemons in bytes; None where there are none, or they are gone."""
    return memory.resident(_pids(daemons)).pss or None


def _pids(groups: Iterable[cgroup.Group]) -> list[int]:
    return [pid for group in groups for pid in group.pids()]
