"""Folders of tare's that unprivileged users may enter, such as a user namespace's root; only root enters TARE_HOME.

They are for daemons that mount an instance's root when it starts. A program that tare starts sees the folders in a
mount namespace of its own (`tare.platforms.parts.common.room`). Every user can read the names in /proc/self/mounts, so
an instance's root is behind a folder that only its own user may enter, as engines do with the roots of their
containers.
"""

from __future__ import annotations

import os
from pathlib import Path

from tare.host.kernel import mounts
from tare.host.resources import removers
from tare.host.resources.claims import OPENED
from tare.host.resources.journal import CleanupStack


def show(cleanup: CleanupStack, source: Path, name: str, owner: int | None = None) -> Path:
    """Mount a folder a second time, below `OPENED`, and return the mount point. ``name``: a label of tare's.

    ``owner``: the only user besides root who may enter; None for every user.
    """
    place = OPENED / name
    cleanup.own(removers.folder(place, below=OPENED.parent))
    OPENED.mkdir(mode=0o711, exist_ok=True)
    place.mkdir(mode=0o711 if owner is None else 0o100)
    if owner is not None:
        os.chown(place, owner, owner)
        place /= "root"
        place.mkdir(mode=0o711)
    mounts.mount("none", place, source=str(source), flags=mounts.BIND)
    return place


def pass_on(place: Path, owner: int) -> None:
    """Let another user enter than the one that `show` was given."""
    os.chown(place.parent, owner, owner)
