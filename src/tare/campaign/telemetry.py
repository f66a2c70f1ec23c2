"""What the host was doing during a trial: steal, pressure, load. Pure readings, differenced."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tare.host import counters


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters at one moment."""

    at_ns: int
    steal_ticks: int
    total_ticks: int
    waited_us: int | None  # PSI: time in which some task waited for a CPU; None where the kernel has no PSI
    load: float

    @classmethod
    def take(cls, cpus: Sequence[int]) -> Self:
        """Read the host's counters, of these CPUs where they are by CPU."""
        steal, total = parse_stat(Path("/proc/stat").read_text(), cpus)
        waited = counters.pressure_us("cpu")
        load = float(Path("/proc/loadavg").read_text().split()[0])
        return cls(time.monotonic_ns(), steal, total, waited, load)

    def steal_since(self, before: Reading) -> float | None:
        """Share of the CPUs' time that the hypervisor below took away, 0 to 1; None for too short a time to tell."""
        ticks = self.total_ticks - before.total_ticks
        return (self.steal_ticks - before.steal_ticks) / ticks if ticks > 0 else None

    def pressure_since(self, before: Reading) -> float | None:
        """Share of the time in which some task waited for a CPU, 0 to 1."""
        if self.waited_us is None or before.waited_us is None or self.at_ns <= before.at_ns:
            return None
        return min(1.0, (self.waited_us - before.waited_us) * 1000 / (self.at_ns - before.at_ns))


def parse_stat(text: str, cpus: Sequence[int]) -> tuple[int, int]:
    """Steal and total ticks of the given CPUs from ``/proc/stat`` (proc(5))."""
    names = {f"cpu{cpu}" for cpu in cpus}
    steal = total = 0
    for line in text.splitlines():
        name, *fields = line.split()
        if name in names:
            ticks = [int(value) for value in fields[:8]]  # guest time is within user's already
            steal += ticks[7]
            total += sum(ticks)
    return steal, total
