"""The levels at which use of the host's kernel is counted."""

from __future__ import annotations

import os
from enum import StrEnum

SCHEMA = "tare.footprint/1"


class Level(StrEnum):
    """What is counted: system calls, functions, lines or stacks of the kernel; or all instructions of a machine."""

    SYSCALLS = "syscalls"  # names of system calls that the host's kernel was asked for
    FUNCTIONS = "functions"  # kernel functions, by symbol; those of a module as "symbol [module]"
    LINES = "lines"  # lines of the kernel's source that have code, as "mm/mmap.c:1405"
    # samples by process and path through the kernel, outermost first: "dd;entry_SYSCALL_64_after_hwframe;...;vfs_read"
    STACKS = "stacks"
    # all that a whole machine executes, by part: "kernel", "of;instance;runc;user" (tare.footprint.instructions)
    INSTRUCTIONS = "instructions"


#: Those that a host in use does not let one count.
LAB_LEVELS = frozenset({Level.FUNCTIONS, Level.LINES, Level.INSTRUCTIONS})


def inside_lab() -> bool:
    """Whether this host is a lab."""
    return "TARE_LAB" in os.environ
