"""Two tasks that wake each other in turn: processes by pipes, threads by futexes.

On one CPU, the default, each way is a switch from one to the other. On more, where both may be awake at once, it is
another measure: of how the host's scheduler places the two.
"""

from __future__ import annotations

from tare.workloads.kernel.unit import unit_cost

WORKLOADS = (
    unit_cost("ipc-pipe", "a byte to another process and back, by pipes", "pipe", "round trip"),
    unit_cost("ipc-futex", "a wake-up of another thread and back, by futexes", "futex", "round trip"),
)
