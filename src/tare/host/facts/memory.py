"""How much memory processes take, of how much."""

from __future__ import annotations

from collections.abc import Iterable

from tare.host.facts.machine import parse_meminfo
from tare.host.kernel import sysinfo, text


def pss_bytes(pids: Iterable[int]) -> int:
    """The sum of the processes' proportional set sizes, in bytes (proc(5)). One that has ended counts as nothing."""
    total = 0
    for pid in pids:
        try:
            total += parse_rollup(text.read(f"/proc/{pid}/smaps_rollup"))
        except OSError:
            continue  # it ended, or is a zombie without memory
    return total


def parse_rollup(rollup: str) -> int:
    """The proportional set size in bytes, from ``/proc/PID/smaps_rollup``; 0 where there is none."""
    for line in rollup.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def mapping_bytes(pids: Iterable[int], size: int) -> int | None:
    """The PSS in bytes of the mappings of exactly this size, in bytes, of these processes; None where there is none.

    A monitor maps its guest's memory as one piece.
    """
    parts: list[int] = []
    for pid in pids:
        try:
            parts += parse_mappings(text.read(f"/proc/{pid}/smaps"), size)
        except OSError:
            continue  # it has ended
    return sum(parts) if parts else None


def parse_mappings(smaps: str, size: int) -> list[int]:
    """The PSS in bytes of each mapping of this size, from ``/proc/PID/smaps``."""
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
    return parse_meminfo(text.said("/proc/meminfo"), "MemTotal") or sysinfo.read().memory_bytes
