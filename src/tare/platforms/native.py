"""native: a chroot into the image, and nothing else isolated. The baseline."""

from __future__ import annotations

import os
import subprocess
from typing import ClassVar

from tare.host import processes, roots
from tare.host.journal import Belongings
from tare.image.build import Image
from tare.image.forms import disk_bytes
from tare.platforms.base import Address, Availability, Instance, Instant, LaunchSpec, Platform, Prepared
from tare.platforms.marks import FirstByte
from tare.platforms.pipes import pipe_stream


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
        procs = spec.group.leaf("tool")
        log = spec.space.log.open("wb")
        with log:
            held = processes.start_held(
                ["chroot", str(root), *spec.agent_argv()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cgroup_procs=procs,
            )
        stream = pipe_stream(held.process)
        first_byte = FirstByte(stream.fileno())
        started = Instant.now()
        held.go()
        address = Address(
            host=spec.network.host,
            port=spec.port,
            instance_port=spec.port,
            ping=None,
            no_ping="it shares the host's address, which answers before the start",
        )
        return Instance(spec, stream, started, address, first_byte)


PLATFORMS = (Native(),)
