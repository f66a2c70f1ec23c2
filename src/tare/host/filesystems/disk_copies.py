"""Copies on the host's disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from tare.host import processes, state

_LIMIT_S = 300.0


def copy(source: Path, target: Path) -> None:
    """Copy a file or folder into a folder, or to a new name, with owners, modes and times. Raises `HostError`.

    Blocks are shared if the filesystem supports it; a change to a file then gets blocks of its own. A link at the top
    is followed, because an image may be a link to another disk, and a copy of the link would be the image itself. Links
    within a folder stay.
    """
    _copied(source, target, "--reflink=auto").require(fix=f"free some space below {state.home()}")


def copy_by_links(source: Path, target: Path) -> None:
    """Copy a folder to a new name by hard links, for trees whose files never change.

    On another filesystem than the source's it is a `copy`. Raises `HostError`.
    """
    if _copied(source, target, "--link").code != 0:
        shutil.rmtree(target, ignore_errors=True)
        copy(source, target)


def _copied(source: Path, target: Path, how: str) -> processes.Finished:
    argv = [*processes.WITH_TARE, "cp", "-a", "-H", how, str(source), str(target)]
    return processes.run(argv, time_limit_s=_LIMIT_S)
