"""The memory of processes and of the host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tare.errors import HostError
from tare.host.facts.machine_facts import parse_meminfo
from tare.host.kernel import host_text, sysinfo


@dataclass(frozen=True, slots=True)
class Resident:
    """The memory of processes, in bytes: proportional set sizes (proc(5), ``smaps_rollup``)."""

    pss: int
    anonymous: int  # the part that is no file's
    shared_memory: int  # the part that is in files that lie in memory alone (tmpfs, memfd)
    rss: int = 0  # all that is mapped and in memory, shared pages once for each process


def resident(pids: Iterable[int]) -> Resident:
    """Return the sums over processes. One that has ended counts as nothing. Raises `HostError` before Linux 5.4."""
    parts = []
    for pid in pids:
        try:
            parts.append(parse_rollup(host_text.read(f"/proc/{pid}/smaps_rollup")))
        except OSError:
            continue  # it ended, or is a zombie without memory
    return Resident(
        sum(part.pss for part in parts),
        sum(part.anonymous for part in parts),
        sum(part.shared_memory for part in parts),
        sum(part.rss for part in parts),
    )


def parse_rollup(rollup: str) -> Resident:
    """Return what one process has, from ``/proc/PID/smaps_rollup``; nothing where there is none. Raises `HostError`."""
    sizes = {}
    for line in rollup.splitlines():
        name, _, rest = line.partition(":")
        if name.startswith("Pss") or name == "Rss":
            sizes[name] = int(rest.split()[0]) * 1024
    if not sizes:
        return Resident(0, 0, 0)
    if "Pss_Anon" not in sizes:
        raise HostError("this kernel does not separate programs' own memory from files'", fix="boot Linux 5.4 or newer")
    return Resident(sizes["Pss"], sizes["Pss_Anon"], sizes["Pss_Shmem"], sizes.get("Rss", 0))


def mapping_bytes(pids: Iterable[int], size: int) -> int | None:
    """Return the PSS in bytes of these processes' mappings of exactly this size in bytes; None if there is none.

    A monitor maps its guest's memory as one piece.
    """
    parts: list[int] = []
    for pid in pids:
        try:
            parts += parse_mappings(host_text.read(f"/proc/{pid}/smaps"), size)
        except OSError:
            continue  # it has ended
    return sum(parts) if parts else None


def parse_mappings(smaps: str, size: int) -> list[int]:
    """Return the PSS in bytes of each mapping of this size, from ``/proc/PID/smaps``."""
    pieces: list[int] = []
    of_size = False
    for line in smaps.split("\n"):  # names of mapped files may have other ends of lines
        if line.startswith("Size:"):
            of_size = int(line.split()[1]) * 1024 == size
        elif of_size and line.startswith("Pss:"):
            pieces.append(int(line.split()[1]) * 1024)
    return pieces


def host_bytes() -> int:
    """All memory that this host has, as its kernel counts it."""
    return parse_meminfo(host_text.said("/proc/meminfo"), "MemTotal") or sysinfo.read().memory_bytes
