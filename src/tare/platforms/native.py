"""native: a chroot into the image, and nothing else isolated. The baseline."""

from __future__ import annotations

import os
from typing import ClassVar

from tare.host import roots
from tare.host.journal import Belongings
from tare.image.build import Image
from tare.image.forms import disk_bytes
from tare.platforms.base import Address, Availability, Instance, LaunchSpec, Platform, Prepared
from tare.platforms.pipes import start


class Native(Platform):
    """The same bits on the bare host."""

    name = "native"
    title = "the host itself: chroot into the image"
    network_path = "client, bridge, host stack"
    baseline: ClassVar[bool] = True

    def detect(self) -> Availability:
        """Root and chroot are all it takes."""
        if os.geteuid() != 0:
            return Availability(False, reason="chroot needs root", fix="run tare as root")
        return Availability(True, version=os.uname().release)

    def prepare(self, image: Image) -> Prepared:
        """The image as a folder."""
        return Prepared("folder", disk_bytes(image.root))

    def launch(self, spec: LaunchSpec, things: Belongings) -> Instance:
        """Start the agent in a chroot, in the instance's control group."""
        root = roots.overlay_root(things, spec.space, spec.image.root)
        roots.chroot_mounts(things, root, spec.space.data)
        began = start(spec, ["chroot", str(root), *spec.agent_argv()])
        return Instance(spec, began.stream, began.at, Address.on_host(spec), began.first_byte)


PLATFORMS = (Native(),)
