"""Processes that a shared daemon starts for one instance alone: its helpers, which are that instance's to count."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.errors import PlatformError
from tare.host.cgroup import Group
from tare.timeouts import until

#: A daemon may start one more while the others are moved; by then it is to have done so.
MOVE_LIMIT_S = 5.0
#: The leaf that helpers are moved to.
LEAF = "helpers"


@dataclass(frozen=True, slots=True)
class Seen:
    """A process, as /proc shows it."""

    parent: int
    argv: Sequence[str]


def processes_by_pid() -> dict[int, Seen]:
    """All processes of the host."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            argv = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            found[int(folder.name)] = Seen(parent, argv)
    return found


def adopt(group: Group, helps: Callable[[Sequence[str]], bool], *, everywhere: bool = False) -> None:
    """Move all processes whose command line ``helps`` knows into an instance's group.

    What they used before stays with the daemon, and on cgroup v1 so do the pages that they hold already. Raises
    `PlatformError` when they do not stay.
    """
    move(group, lambda: {pid for pid, one in processes_by_pid().items() if helps(one.argv)}, everywhere=everywhere)


def move(group: Group, wanted: Callable[[], set[int]], leaf: str = LEAF, *, everywhere: bool = False) -> None:
    """Move processes into a leaf of a group until all that are ``wanted`` are in it. Raises `PlatformError`."""
    procs = group.leaf(leaf, everywhere=everywhere)
    deadline = until(MOVE_LIMIT_S)
    while outside := wanted() - set(group.pids()):
        for pid in outside:
            with contextlib.suppress(ProcessLookupError):
                for file in procs:
                    file.write_text(str(pid))
        if time.monotonic() > deadline:
            raise PlatformError(
                f"processes {sorted(outside)} do not stay in the instance's control group",
                fix="see who moves them back",
            )
