"""The kernel's files of a control group: pure functions of their contents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tare.errors import HostError


@dataclass(frozen=True, slots=True)
class MemoryKills:
    """Processes of a group, and of those below, that the kernel has killed for lack of memory."""

    count: int
    # True: a limit of the group or of one below was reached. False: the host, or a group above, had no memory left.
    at_limit: bool
    limit_bytes: int  # The group's own; 0: no limit.

    @classmethod
    def known(cls, count: int, *, at_limit: bool, limit_bytes: int) -> Self | None:
        """Return the kills, or None for a ``count`` of 0."""
        return cls(count, at_limit, limit_bytes) if count else None


def parse_cpu_stat(text: bytes) -> int:
    """Return the CPU time in ns from a v2 ``cpu.stat``. Raises `HostError` if it is missing."""
    for line in text.splitlines():
        name, _, value = line.partition(b" ")
        if name == b"usage_usec":
            return int(value) * 1000
    raise HostError("cpu.stat has no usage_usec")


def parse_memory_stat(text: bytes, *, unified: bool) -> int | None:
    """Return the bytes in use of a group and all below, from a ``memory.stat``; on v1 without the kernel's own.

    None if v2 does not report the kernel's memory for it (before Linux 5.18).
    """
    values = _values(text)
    fields = (b"anon", b"file", b"kernel", b"sock") if unified else (b"total_rss", b"total_cache")
    return sum(values[name] for name in fields) if set(fields) <= values.keys() else None


def parse_kernel_bytes(text: bytes) -> int:
    """Return the kernel's own memory for a group and all below, in bytes, from a v2 ``memory.stat``.

    Before Linux 5.18, the file has its parts but not their sum.
    """
    values = _values(text)
    parts = (b"kernel_stack", b"pagetables", b"percpu", b"slab")
    kernel = values.get(b"kernel", sum(values.get(name, 0) for name in parts))
    return kernel + values.get(b"sock", 0)


def parse_object_bytes(text: bytes) -> int:
    """Return the bytes of the kernel's objects that cannot be reclaimed, from a v2 ``memory.stat``."""
    values = _values(text)
    return values.get(b"slab_unreclaimable", 0) + values.get(b"percpu", 0)


def parse_shared_memory(text: bytes, *, unified: bool) -> int:
    """Return the bytes in memory-only files of a group and all below, from a ``memory.stat``."""
    values = _values(text)
    return values.get(b"shmem" if unified else b"total_shmem", 0)


def parse_memory_events(events: bytes, limit: bytes) -> MemoryKills | None:
    """Return the kills from ``memory.max`` and a v2 ``memory.events``, which includes the groups below."""
    values = _values(events)
    limit_bytes = 0 if limit.strip() == b"max" else int(limit)
    # If the host, or a group above, has no memory left, `oom_kill` counts that too, but `oom` does not.
    return MemoryKills.known(oom_kills(events), at_limit=values.get(b"oom", 0) > 0, limit_bytes=limit_bytes)


def oom_kills(text: bytes) -> int:
    """Return the kills for lack of memory, from a v2 ``memory.events`` or a v1 ``memory.oom_control`` (Linux 4.13)."""
    return _values(text).get(b"oom_kill", 0)


def parse_pids_events(text: bytes) -> int:
    """Return the number of refused processes and threads, from a ``pids.events`` (Linux 4.8)."""
    return _values(text).get(b"max", 0)


def parse_throttled(text: bytes) -> tuple[int, int] | None:
    """Return the throttled periods, and the time in ns, from a ``cpu.stat``: v1 counts ns, v2 us."""
    values = _values(text)
    if b"nr_throttled" not in values:
        return None
    return values[b"nr_throttled"], values.get(b"throttled_time", 0) or values.get(b"throttled_usec", 0) * 1000


def _values(text: bytes) -> dict[bytes, int]:
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}
