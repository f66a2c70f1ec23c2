"""The identity of a process beyond its pid, which the kernel may have given to another process since."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Self

from tare.errors import HostError
from tare.host.kernel import process_table, text

BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True, slots=True)
class Owner:
    """A process of this host."""

    pid: int
    start_ticks: int
    boot: str

    @classmethod
    def me(cls) -> Self:
        """The calling process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Self:
        """The process that has this id now."""
        return cls(pid, _start_ticks(pid) or 0, boot_id())

    def lives(self) -> bool:
        """Whether that very process still runs."""
        return self.boot == boot_id() and _start_ticks(self.pid) == self.start_ticks

    def ended(self) -> bool:
        """Whether it runs no more, though its parent may not have waited for it yet (a zombie)."""
        stat = process_table.stat(self.pid)
        return not self.lives() or stat is None or stat.ended

    def replaced(self) -> bool:
        """Whether its id is another process's now, so that what is named by the id alone belongs to that one."""
        now = _start_ticks(self.pid)
        return now is not None and not self.lives()

    def __str__(self) -> str:
        return f"{self.pid} {self.start_ticks} {self.boot}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The process that `str` wrote as text. Raises `ValueError`."""
        pid, start_ticks, boot = text.split(" ")
        return cls(int(pid), int(start_ticks), boot)


def _start_ticks(pid: int) -> int | None:
    stat = process_table.stat(pid)
    return None if stat is None else stat.start_ticks


def boot_id() -> str:
    """The id of this boot of the host's kernel, the same in every namespace.

    Raises `HostError` where /proc does not show it: what does not say in which boot it was made cannot be removed
    safely.
    """
    told = text.said(BOOT_ID)
    if not told:
        raise HostError(
            f"{BOOT_ID} cannot be read: this process sees only a part of /proc",
            fix="run tare where all of /proc can be seen: mounted without subset=pid (systemd: ProcSubset=all)",
        )
    return told
