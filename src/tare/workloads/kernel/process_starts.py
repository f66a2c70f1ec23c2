"""Processes: fork, exit and wait, and the same with the start of a program in between.

What forks is the agent, a process of some megabytes; what it starts is the agent too, a static program that ends at
once.
"""

from __future__ import annotations

from tare.workloads.kernel.unit import unit_cost

WORKLOADS = (
    unit_cost("proc-fork", "fork, exit, wait", "fork", "process"),
    unit_cost("proc-exec", "fork, exec of a small static program, exit, wait", "exec", "process"),
)
