"""Copies on the host's disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from tare.host import processes, state

_LIMIT_S = 300.0


def copy(source: Path, target: Path) -> None:
    """Copy a file or folder into a folder, or to a new name, with owners, modes and times. Raises `HostError`.

    Blocks are shared where the filesystem can: who changes a file gets its own. A link is followed, for an image may be
    one to another disk, and a copy of that would be the image itself; links within a folder stay.
    """
    _copied(source, target, "--reflink=auto").require(fix=f"free some space below {state.home()}")


def copy_by_links(source: Path, target: Path) -> None:
    """Copy a folder to a new name, where it has the same files by hard links: for trees whose files nobody changes.

    On another filesystem than the source's it is a `copy`. Raises `HostError`.
    """
    if _copied(source, target, "--link").code != 0:
        shutil.rmtree(target, ignore_errors=True)
        copy(source, target)


def _copied(source: Path, target: Path, how: str) -> processes.Finished:
    argv = [*processes.WITH_TARE, "cp", "-a", "-H", how, str(source), str(target)]
    return processes.run(argv, time_limit_s=_LIMIT_S)
