"""Identity of a process beyond its pid, which the kernel may have reused."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Self

from tare.errors import HostError
from tare.host.kernel import host_text, process_table

BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True, slots=True)
class Owner:
    """A process of this host."""

    pid: int
    start_ticks: int
    boot: str

    @classmethod
    def me(cls) -> Self:
        """Return the calling process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Self:
        """Return the process with this id at present."""
        return cls(pid, _start_ticks(pid) or 0, boot_id())

    def lives(self) -> bool:
        """Return True if this very process is still running."""
        return self.boot == boot_id() and _start_ticks(self.pid) == self.start_ticks

    def ended(self) -> bool:
        """Return True if it has ended, even if its parent has not waited for it yet (a zombie)."""
        stat = process_table.stat(self.pid)
        return not self.lives() or stat is None or stat.ended

    def replaced(self) -> bool:
        """Return True if its id is another process's now, and with it everything named by the id alone."""
        now = _start_ticks(self.pid)
        return now is not None and not self.lives()

    def __str__(self) -> str:
        return f"{self.pid} {self.start_ticks} {self.boot}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text that `str` wrote. Raises `ValueError`."""
        pid, start_ticks, boot = text.split(" ")
        return cls(int(pid), int(start_ticks), boot)


def _start_ticks(pid: int) -> int | None:
    stat = process_table.stat(pid)
    return None if stat is None else stat.start_ticks


def boot_id() -> str:
    """Return the id of this boot of the host's kernel, the same in every namespace.

    Raises `HostError` if /proc does not show it: an entry without its boot cannot be removed safely.
    """
    boot = host_text.said(BOOT_ID)
    if not boot:
        raise HostError(
            f"{BOOT_ID} cannot be read: this process sees only a part of /proc",
            fix="run tare where all of /proc can be seen: mounted without subset=pid (systemd: ProcSubset=all)",
        )
    return boot
