"""native-plain: a chroot into a copy of the image, on the host's own filesystem.

native's root is an overlay, as that of most containers: what overlayfs costs them cancels out against it. Here nothing
is between a program and the host's filesystem, so that it is a second baseline where storage is weighed.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from tare.host.filesystems.disk_copies import copy
from tare.host.resources.journal import CleanupStack
from tare.model import Family
from tare.platforms.base import LaunchSpec
from tare.platforms.native import Native


class NativePlain(Native):
    """The host itself, as of `native.Native`, without overlayfs."""

    name = "native-plain"
    title = "the host itself without overlayfs: chroot into a copy of the image"
    baseline: ClassVar[bool] = False
    by_default = False
    second_baseline = (Family.STORAGE,)
    not_honoured = ("its root is a copy on the host's filesystem, written before each start",)

    def _root(self, spec: LaunchSpec, cleanup: CleanupStack) -> Path:  # noqa: ARG002 (it goes with the folder)
        root = spec.space.folder / "root"
        copy(spec.image.root, root)
        return root


PLATFORMS = (NativePlain(),)
