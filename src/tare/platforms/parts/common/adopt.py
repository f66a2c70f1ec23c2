"""Processes that a shared daemon starts for one instance alone: their cost is accounted to that instance."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tare.errors import PlatformError
from tare.host.cgroup import Group
from tare.host.kernel import process_table
from tare.timeouts import until

#: A daemon may start further ones while they are moved; after so long there must be no new ones.
MOVE_LIMIT_S = 5.0
#: The leaf of the instance's control group that they are moved to.
LEAF = "helpers"


def adopt(group: Group, helps: Callable[[Sequence[str]], bool]) -> None:
    """Move all processes for whose command line ``helps`` is true into an instance's group.

    What they used before stays accounted to the daemon, and on cgroup v1 so do the pages that they hold already. Raises
    `PlatformError` when they do not stay.
    """
    move(
        group,
        lambda: {pid for pid, argv in process_table.command_lines().items() if helps(argv)},
    )


def move(group: Group, pids: Callable[[], set[int]], leaf: str = LEAF) -> None:
    """Move processes into a leaf of a group until all of ``pids()`` are in it. Raises `PlatformError`."""
    procs = group.leaf(leaf)
    deadline = until(MOVE_LIMIT_S)
    while outside := pids() - set(group.pids()):
        enter(procs, outside)
        if time.monotonic() > deadline:
            raise PlatformError(
                f"processes {sorted(outside)} do not stay in the instance's control group",
                fix="see who moves them back",
            )


def enter(procs: Sequence[Path], pids: Iterable[int]) -> None:
    """Move processes into the group of these ``cgroup.procs`` files. Skips a process that has ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            for file in procs:
                file.write_text(str(pid))
