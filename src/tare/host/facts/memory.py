"""How much memory processes take, of how much."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tare.host.facts.machine import parse_meminfo


def pss_bytes(pids: Iterable[int]) -> int:
    """The sum of the processes' proportional set sizes, in bytes (proc(5)). One that has ended counts as nothing."""
    total = 0
    for pid in pids:
        try:
            total += parse_rollup(Path(f"/proc/{pid}/smaps_rollup").read_text())
        except OSError:
            continue  # it ended, or is a zombie without memory
    return total


def parse_rollup(text: str) -> int:
    """The proportional set size in bytes, from ``/proc/PID/smaps_rollup``; 0 where there is none."""
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def host_bytes() -> int:
    """All memory that this host has, as its kernel counts it."""
    return parse_meminfo(Path("/proc/meminfo").read_text(), "MemTotal")
