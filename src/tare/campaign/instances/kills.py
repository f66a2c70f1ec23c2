"""Kills within an instance: processes, for want of memory, by the host's kernel or its own; or its own kernel.

And which processes the host's kernel refused it. What the host's kernel did is counted by the control group. The others
stand on the console and are the guest's word, so they explain a failure that was seen otherwise, and are none
themselves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tare.errors import Failed, attempt
from tare.host import instance_console
from tare.host.cgroup_files import MemoryKills
from tare.platforms.base import LaunchSpec

#: Linux's line on each kill (mm/oom_kill.c), an error, which a quiet console prints too; with the process's name.
_KILLED = re.compile(rb"[Oo]ut of memory[^\n]*: Killed process \d+ \(([ -~]{1,15})\)")
#: User-Mode Linux's line where the host maps no more pages of a process, which then gets signal 9.
_NOT_MAPPED = b"UML ran out of memory on the host side"
_PANIC = re.compile(rb"Kernel panic - not syncing: ([ -~]{1,200})")
#: Of a panic where only the first process was left to kill (mm/oom_kill.c): in a guest that is tare's agent.
_DEADLOCK = "System is deadlocked on memory"


@dataclass(frozen=True, slots=True)
class Kills:
    """Processes of one instance that were killed so far, and requests that it was refused."""

    memory_bytes: int  # what the instance may use
    by_host: MemoryKills | None
    by_guest: Sequence[str] = ()  # names of processes that its own kernel killed for want of memory, in order
    not_mapped: int = 0  # processes that User-Mode Linux killed, as the host mapped no more of their pages
    panic: str = ""  # of its own kernel
    refused: int = 0  # how often the host's kernel refused it a process or thread, as it had as many as it may
    pids: int | None = None  # as many as it may have

    @classmethod
    def read(cls, spec: LaunchSpec, *, accounted: bool, own_kernel: bool) -> Self:
        """All so far; nothing also where it cannot be read: it only explains another failure.

        ``accounted``: whether the instance's work is in its control group; ``own_kernel``: as of its platform.
        """
        by_host = attempt(spec.group.memory_kills) if accounted else None
        refused = attempt(lambda: spec.group.refused_processes(spec.resources.pids)) if accounted else 0
        printed = instance_console.read(spec.space.log) if own_kernel else b""
        panic = _PANIC.search(printed)
        return cls(
            spec.resources.memory_bytes,
            None if isinstance(by_host, Failed) else by_host,
            [name.decode("ascii") for name in _KILLED.findall(printed)],
            printed.count(_NOT_MAPPED),
            panic[1].decode("ascii").strip() if panic else "",
            0 if isinstance(refused, Failed) else refused,
            spec.resources.pids,
        )

    @property
    def count(self) -> int:
        """The number of them."""
        host_kills = self.by_host.count if self.by_host else 0
        return host_kills + len(self.by_guest) + self.not_mapped + bool(self.panic) + self.refused

    def in_words(self) -> str:
        """Return what was killed or refused, by whom, and what would change that; "" for nothing."""
        reasons = (self._by_host(), self._by_guest(), self._not_mapped(), self._panic(), self._refused())
        return "; ".join(filter(None, reasons))

    def _by_host(self) -> str:
        kills = self.by_host
        if kills is None:
            return ""
        text = f"processes of it that the kernel killed for want of memory: {kills.count}"
        if not kills.at_limit:
            return f"{text}, not at its own limit: the host, or a control group above, had none left"
        if kills.limit_bytes > self.memory_bytes:
            guest_mib = self.memory_bytes >> 20
            return f"{text}, at {kills.limit_bytes >> 20} MiB for the guest's {guest_mib} and its monitor's"
        return f"{text}, at its limit of {kills.limit_bytes >> 20} MiB (tare run --memory)"

    def _by_guest(self) -> str:
        if not self.by_guest:
            return ""
        text = f"processes of it that its own kernel killed for want of memory: {len(self.by_guest)}"
        return f"{text}, the last one {self.by_guest[-1]}, {self._of_memory()}"

    def _not_mapped(self) -> str:
        if not self.not_mapped:
            return ""
        text = f"processes of it that its own kernel killed as the host maps no more of their pages: {self.not_mapped}"
        return f"{text} (sysctl vm.max_map_count)"

    def _panic(self) -> str:
        if not self.panic:
            return ""
        text = f"its own kernel panicked: {self.panic}"
        return f"{text}, {self._of_memory()}" if _DEADLOCK in self.panic else text

    def _refused(self) -> str:
        if not self.refused:
            return ""
        return f"it took all process ids that it may have: {self.pids or 0:,} with threads"

    def _of_memory(self) -> str:
        return f"of {self.memory_bytes >> 20} MiB (tare run --memory)"
