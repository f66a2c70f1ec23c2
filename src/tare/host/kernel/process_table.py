"""The processes of this host as /proc shows them (proc(5)): read, never changed.

A process may end at any moment: it is in no list then, and what is asked of it is empty, as of one that /proc hides.
Names and command lines are a tenant's to choose (`tare.host.kernel.host_text`).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from tare.host.kernel.host_text import read

PROC = Path("/proc")
#: PF_KTHREAD (linux/sched.h)
_KERNEL_THREAD = 0x00200000
#: Any other error, such as too many open files, would hide a process that runs.
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
#: Names of the kernel's scheduling policies (sched(7)).
_POLICIES = {os.SCHED_OTHER: "normal", os.SCHED_BATCH: "batch", os.SCHED_IDLE: "idle", os.SCHED_FIFO: "FIFO"}


@dataclass(frozen=True, slots=True)
class Stat:
    """The origin of a process, by /proc/PID/stat."""

    parent: int
    ended: bool  # only its parent has not waited for it yet (a zombie)
    kernels: bool  # a thread of the kernel's own
    start_ticks: int  # since boot


def parse_stat(text: str) -> Stat:
    """Read /proc/PID/stat. Its second field, a name in brackets, may have anything in it."""
    fields = text.rpartition(")")[2].split()
    kernels = bool(int(fields[6]) & _KERNEL_THREAD)
    return Stat(parent=int(fields[1]), ended=fields[0] in "ZX", kernels=kernels, start_ticks=int(fields[19]))


def parse_status(text: str) -> dict[str, str]:
    """Return the fields of /proc/PID/status by name.

    A newline in a process's name is escaped, other ends of lines are not.
    """
    return dict(re.findall(r"^(\w+):[ \t]*(.*?)[ \t]*$", text, re.MULTILINE))


def text(pid: int, name: str) -> str:
    """Return what is in a file below /proc/PID; "" where the process is gone.

    Raises `OSError` where it cannot be read.
    """
    with contextlib.suppress(*_GONE):
        return read(PROC / str(pid) / name)
    return ""


def pids() -> list[int]:
    """All processes, the kernel's threads and those that have ended and were not waited for too."""
    return [int(folder.name) for folder in PROC.glob("[0-9]*")]


def tasks(pid: int) -> int:
    """Return how many threads a process has; 0 where it is gone."""
    with contextlib.suppress(*_GONE):
        return len(list((PROC / str(pid) / "task").iterdir()))
    return 0


def page_tables(pid: int) -> int:
    """Bytes of a process's page tables (``VmPTE``); 0 where it is gone, or is the kernel's."""
    words = status(pid).get("VmPTE", "").split()
    return int(words[0]) * 1024 if words and words[0].isdigit() else 0


def mount_namespace(pid: int) -> str | None:
    """Return the name of a process's namespace of mounts, or None if the process has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    except OSError:
        return None


def stat(pid: int) -> Stat | None:
    """Return where a process comes from; None where it is gone."""
    line = text(pid, "stat")
    return parse_stat(line) if line else None


def stats() -> dict[int, Stat]:
    """Return where all processes come from, by process id."""
    return {pid: process for pid in pids() if (process := stat(pid)) is not None}


def status(pid: int, thread: int | None = None) -> dict[str, str]:
    """Return the fields of /proc/PID/status of a process or of one of its threads; none where it is gone."""
    return parse_status(text(pid, "status" if thread is None else f"task/{thread}/status"))


def priority(pid: int) -> str:
    """Return a process's scheduling policy and niceness: ``normal, nice 0``; "" of one that is gone."""
    try:
        policy, niceness = os.sched_getscheduler(pid), os.getpriority(os.PRIO_PROCESS, pid)
    except _GONE:
        return ""
    return f"{_POLICIES.get(policy, f'policy {policy}')}, nice {niceness}"


def argv(pid: int) -> list[str]:
    """Return the words of a process's command line; none of a thread of the kernel's, and where it has ended."""
    line = text(pid, "cmdline").removesuffix("\0")
    return line.split("\0") if line else []


def variables(name: str) -> dict[int, str]:
    """Return what a variable of the environment was when each process that has it began its program, by process id."""
    values = {}
    for pid in pids():
        for assignment in text(pid, "environ").split("\0"):
            if assignment.startswith(f"{name}="):
                values[pid] = assignment.partition("=")[2]
    return values


def command_lines() -> dict[int, list[str]]:
    """Return the words of the command lines of all processes that have one, by process id."""
    return {pid: words for pid in pids() if (words := argv(pid))}


def named(names: Collection[str]) -> list[int]:
    """Return the processes that have one of these names, of which the kernel keeps 15 bytes."""
    return [pid for pid in pids() if text(pid, "comm").removesuffix("\n") in names]


def descendants(first: Iterable[int]) -> list[int]:
    """Return these processes and all that descend from them, without those that have ended.

    Whose parent ends gets another one, and is none of them then; the first process of a pid namespace gets all in it.
    """
    by_pid = stats()
    children: dict[int, list[int]] = {}
    for pid, process in by_pid.items():
        children.setdefault(process.parent, []).append(pid)
    family: set[int] = set()
    generation = set(first)
    while generation := generation - family:  # ids are used again: what was read at different moments may be a circle
        family |= generation
        generation = {child for pid in generation for child in children.get(pid, [])}
    return sorted(pid for pid in family if pid in by_pid and not by_pid[pid].ended)


def descriptors(pid: int) -> list[Path]:
    """Return the links below /proc/PID/fd of what a process has open.

    None where it has ended, or is not ours to see.
    """
    with contextlib.suppress(*_GONE):
        return list((PROC / str(pid) / "fd").iterdir())
    return []


def open_files(pid: int) -> dict[str, Path]:
    """Return the links of `descriptors` by what a process has open: the path of a file, or ``socket:[1234]``.

    Left out are those whose path is too long to be read.
    """
    links: dict[str, Path] = {}
    for descriptor in descriptors(pid):
        with contextlib.suppress(OSError):  # closed meanwhile
            links[str(descriptor.readlink())] = descriptor
    return links


def open_flags(descriptor: Path) -> int:
    """Return the flags that a descriptor was opened with, given as its /proc/PID/fd/N.

    Raises `OSError` once it is closed.
    """
    lines = read(descriptor.parent.parent / "fdinfo" / descriptor.name)
    return next(int(line.split()[1], 8) for line in lines.split("\n") if line.startswith("flags:"))
