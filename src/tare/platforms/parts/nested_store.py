"""Docker's store with the image in it, as a disk: made once, by a Docker in a guest of its own, and cached.

No daemon runs on this host for it, and an import into the store that each guest's Docker starts from would take far
longer than the rest of its start.
"""

from __future__ import annotations

import select
import socket
import subprocess
import time
from pathlib import Path

from tare.errors import ImageError
from tare.host import console, ext4, pinning, processes
from tare.image import forms, guest
from tare.image.build import Image
from tare.image.places import beside, locked
from tare.platforms.parts.inner import docker_import, padded
from tare.platforms.parts.machine import Machine, Plug, command
from tare.platforms.parts.vm import accept, root_bytes, root_disk
from tare.timeouts import stretched, until

#: Of the guest that imports.
MEMORY_BYTES = 1 << 30
#: A first disk, the data volume, the system, the order: the tar is on the next.
TAR = "/dev/vde"
#: An emulated guest takes minutes.
LIMIT_S = 600.0
#: A line is due.
SAID_CAP = 1 << 16
#: Nobody is on that guest's network.
PLUG = Plug("user,id=net,restrict=on", "02:7a:0a:00:02:0f", "10.0.2.15/24", "10.0.2.2")


def ensure(image: Image, system: Path, accel: str) -> Path:
    """The disk, from the cache or made; ``system``: the outer system with Docker. Raises `ImageError`."""
    place = image.root.parent / f"docker-{system.stem.removeprefix('outer-')}"  # short, for a socket is in it
    disk = place / "store.ext4"
    if disk.exists():
        return disk
    with locked(image.root.parent, lambda _: None, "Docker's store"):
        if not disk.exists():
            with beside(place, "Docker's store") as folder:
                _make(image, system, accel, folder)
    return disk


def _make(image: Image, system: Path, accel: str, folder: Path) -> None:
    store = folder / "store.ext4"
    ext4.make(store, root_bytes(image)).require(fix="apt-get install e2fsprogs")
    (folder / "order").write_bytes(padded(docker_import(TAR)))
    made = guest.ensure()
    machine = Machine(
        kind="q35",
        accel=accel,
        cpus=len(pinning.usable()),
        memory_bytes=MEMORY_BYTES,
        kernel=made.kernel,
        initramfs=made.initramfs,
        root=root_disk(image),
        data=store,
        control=folder / "control",
        plug=PLUG,
        agent=(),
        further=(system, folder / "order", forms.oci_tar(image)),
        words=("tare.outer",),
    )
    said = _run(machine, folder)
    if not said.startswith(b"sha256:"):
        last = " | ".join(console.read(folder / "console").decode(errors="replace").strip().splitlines()[-3:])
        raise ImageError(
            f"Docker in a guest does not import the image: {last}", fix="see that docker runs on this host"
        )
    for name in ("order", "control", "console"):
        (folder / name).unlink(missing_ok=True)


def _run(machine: Machine, folder: Path) -> bytes:
    """All that the guest says by its port, until it ends."""
    with socket.socket(socket.AF_UNIX) as listener, console.opened(folder / "console") as errors:
        listener.bind(str(machine.control))
        listener.listen(1)
        # The parent's death ends it: nobody else knows of it.
        argv = [*processes.WITH_TARE, "env", f"TMPDIR={folder}", *command(machine)]
        process = processes.start(argv, stdout=errors, stderr=errors)
        try:
            with accept(listener, lambda: process.poll() is not None) as port:
                said = _all(port)
            process.wait(timeout=stretched(10))
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            raise ImageError("Docker in a guest takes too long to import the image", fix="try again") from error
        finally:
            processes.kill_group(process)
            process.wait()
    return said


def _all(port: socket.socket) -> bytes:
    """What comes until its end, or `SAID_CAP` bytes. Raises `TimeoutError` at the limit, however it trickles in."""
    deadline = until(LIMIT_S)
    said = b""
    while len(said) < SAID_CAP:
        if not select.select([port], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        piece = port.recv(4096)
        if not piece:
            break
        said += piece
    return said
