"""Copies on the host's disk."""

from __future__ import annotations

from pathlib import Path

from tare.host import processes, state

_LIMIT_S = 300.0


def copy(source: Path, target: Path) -> None:
    """Copy a file or folder into a folder, or to a new name, with owners, modes and times. Raises `HostError`.

    Blocks are shared where the filesystem can: who changes a file gets its own. A link is followed, for an image may be
    one to another disk, and a copy of that would be the image itself; links within a folder stay.
    """
    argv = [*processes.WITH_TARE, "cp", "-a", "-H", "--reflink=auto", str(source), str(target)]
    processes.run(argv, time_limit_s=_LIMIT_S).require(fix=f"free some space below {state.home()}")
