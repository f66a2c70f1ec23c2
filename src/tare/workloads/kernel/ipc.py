"""Two tasks that wake each other in turn: processes by pipes, threads by futexes.

Both are kept on one CPU, so that each way is a switch from one to the other. gVisor keeps to no such wish: there the
two may be awake at once, where an instance has several CPUs.
"""

from __future__ import annotations

from tare.workloads.kernel.unit import unit_cost

WORKLOADS = (
    unit_cost("ipc-pipe", "a byte to another process and back, by pipes", "pipe", "round trip"),
    unit_cost("ipc-futex", "a wake-up of another thread and back, by futexes", "futex", "round trip"),
)
