"""Folders of tare's where users without rights pass, as a user namespace's root is: only root enters TARE_HOME.

For daemons that mount an instance's root when it starts. A program that tare starts is shown the folders in a mount
namespace of its own (`tare.platforms.parts.common.room`). The place cannot be listed: who knows no name in there sees
none.
"""

from __future__ import annotations

from pathlib import Path

from tare.host.kernel import mounts
from tare.host.resources import removers
from tare.host.resources.claims import OPENED
from tare.host.resources.journal import CleanupStack


def show(cleanup: CleanupStack, source: Path, name: str) -> Path:
    """Mount a folder once more, below `OPENED`, and return where. ``name``: a label of tare's."""
    place = OPENED / name
    cleanup.own(removers.folder(place, below=OPENED.parent))
    OPENED.mkdir(mode=0o711, exist_ok=True)
    place.mkdir(mode=0o711)
    mounts.mount("none", place, source=str(source), flags=mounts.BIND)
    return place
