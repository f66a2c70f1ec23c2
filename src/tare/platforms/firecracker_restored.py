"""Firecracker, begun from a snapshot: a warm start. The agent ran in a machine before, and goes on in a new process.

What is measured begins with the start of the Firecracker that loads the snapshot. The machine of which it was taken is
booted by the same launch, and is gone by then: disks, TAP and sockets have the same paths, as a snapshot asks for. By
Firecracker's documentation (snapshot-support.md).
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
from typing import Any

from tare.errors import PlatformError
from tare.host import instance_console, processes
from tare.platforms.base import LaunchSpec
from tare.platforms.firecracker import PROGRAM, QUIET, Firecracker, JailPaths
from tare.platforms.parts.common.callback import connected
from tare.platforms.parts.machines.firecracker_api import (
    MEMORY,
    PAUSE,
    SNAPSHOT_LIMIT_S,
    STATE,
    Api,
    configure,
    load,
    snapshot,
)
from tare.platforms.parts.machines.microvm import requests
from tare.platforms.parts.machines.microvm_life import API, VSOCK

#: The agent says that it is there by one byte, and goes on when that connection ends (``--held``).
HERE = b"."


class FirecrackerRestored(Firecracker):
    """The machine of `firecracker-api`, in the state that a snapshot of it has."""

    agent_options = ("--held",)
    from_snapshot = True

    def __init__(self) -> None:
        super().__init__("firecracker-restored", "Firecracker, restored from a snapshot: a warm start", api=True)

    def _before(self, spec: LaunchSpec, place: JailPaths, config: dict[str, Any], listener: socket.socket) -> None:
        """Boot the machine until its agent waits, and take the snapshot. Raises `PlatformError`."""
        api = place.folder / API
        argv = [PROGRAM, "--id", spec.id, *QUIET, "--api-sock", place.seen(api)]
        nothing = subprocess.DEVNULL
        with instance_console.opened(spec.space.log) as log:
            procs = spec.group.leaf("tool")
            first = processes.start(argv, stdin=nothing, stdout=log, stderr=log, cgroup_procs=procs)
        try:
            configure(api, requests(config), lambda: first.poll() is not None)
            with connected(listener, first, limit_s=spec.start_limit_s, monitor="Firecracker") as waiting:
                if waiting.recv(1) != HERE:
                    raise PlatformError("the agent that was to wait for a snapshot ended", fix="see the console")
                with contextlib.closing(Api(api, limit_s=SNAPSHOT_LIMIT_S)) as firecracker:
                    firecracker.tell(*PAUSE)
                    firecracker.tell(*snapshot(*_files(place)))
        finally:
            processes.end(first)
        for left in (api, place.folder / VSOCK):  # a new process makes its own, and refuses where there is one
            left.unlink(missing_ok=True)

    def _puts(self, place: JailPaths, config: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:  # noqa: ARG002
        """Return the request that loads the snapshot and resumes."""
        return [load(*_files(place))]


def _files(place: JailPaths) -> tuple[str, str]:
    """Return the paths by which Firecracker opens the files of the snapshot: state and memory."""
    return place.seen(place.folder / STATE), place.seen(place.folder / MEMORY)


PLATFORMS = (FirecrackerRestored(),)
