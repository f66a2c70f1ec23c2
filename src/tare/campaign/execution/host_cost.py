"""The host kernel's shared work while a measured command runs: its threads write back and move packets.

No control group is charged for it: for a container, whose kernel is the host's, it is in nobody's CPU time, while a
guest's own kernel does the same within the guest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tare.host.facts import counters


@dataclass(slots=True)
class KernelWork:
    """CPU time of the kernel's threads, and of interrupts that no task was charged for, on all CPUs of the host."""

    _threads: counters.KernelThreads = field(default_factory=counters.KernelThreads)

    def so_far_ns(self) -> int | None:
        """In ns, of which only differences mean something; None where the kernel does not show its threads."""
        threads_ns = self._threads.total_ns()
        return threads_ns + counters.interrupts_ns() if self._threads.shown else None
