"""Docker's store with the image in it, as a disk: made once, by a Docker in a guest of its own, and cached.

No daemon runs on this host for it. An import at the start of each guest would take far longer than the rest of the
start.
"""

from __future__ import annotations

import select
import socket
import subprocess
import time
from pathlib import Path

from tare.errors import ImageError
from tare.host import distribution, instance_console, processes
from tare.host.filesystems import ext4
from tare.host.kernel import pinning
from tare.image import forms, guest
from tare.image.build_places import atomic_directory, locked
from tare.image.image_build import Image
from tare.platforms.parts.machines.disks import WRITE_BACK, overlay
from tare.platforms.parts.machines.qemu_line import Plug, QemuMachine, command
from tare.platforms.parts.machines.vm import accept, root_bytes, root_disk
from tare.platforms.parts.nested.inner import docker_import, padded
from tare.timeouts import stretched, until

#: Of the guest that imports.
MEMORY_BYTES = 1 << 30
#: A first disk, the data volume, the system, the order: the tar is on the next.
TAR = "/dev/vde"
#: An emulated guest takes minutes.
LIMIT_S = 600.0
#: A guest prints one line: the image's id.
OUTPUT_CAP = 1 << 16
#: That guest has no network.
PLUG = Plug("user,id=net,restrict=on", "02:7a:0a:00:02:0f", "10.0.2.15/24", "10.0.2.2")


def ensure(image: Image, system: Path, accel: str) -> Path:
    """Return the disk, from the cache or made; ``system``: the outer system with Docker. Raises `ImageError`."""
    place = image.root.parent / f"docker-{system.stem.removeprefix('outer-')}"  # short, for a socket is in it
    disk = place / "store.ext4"
    if disk.exists():
        return disk
    with locked(image.root.parent, lambda _: None, "Docker's store"):
        if not disk.exists():
            with atomic_directory(place, "Docker's store") as folder:
                _make(image, system, accel, folder)
    return disk


def _make(image: Image, system: Path, accel: str, folder: Path) -> None:
    store = folder / "store.ext4"
    ext4.make(store, root_bytes(image)).require(fix=distribution.install("e2fsprogs"))
    (folder / "order").write_bytes(padded(docker_import(TAR)))
    boot_files = guest.ensure()
    machine = QemuMachine(
        kind="q35",
        accel=accel,
        cpus=len(pinning.usable()),
        memory_bytes=MEMORY_BYTES,
        kernel=boot_files.kernel,
        initramfs=boot_files.initramfs,
        root=overlay(root_disk(image), folder),
        data=store,
        disks=WRITE_BACK,
        control=folder / "control",
        plug=PLUG,
        agent=(),
        further=(system, folder / "order", forms.oci_tar(image)),
        words=("tare.outer",),
    )
    output = _run(machine, folder)
    if not output.startswith(b"sha256:"):
        last = " | ".join(instance_console.read(folder / "console").decode(errors="replace").strip().splitlines()[-3:])
        raise ImageError(
            f"Docker in a guest does not import the image: {last}", fix="see that docker runs on this host"
        )
    for name in ("order", "control", "console", "root.qcow2"):
        (folder / name).unlink(missing_ok=True)


def _run(machine: QemuMachine, folder: Path) -> bytes:
    """Return the guest's output on its virtio port, until it ends."""
    with socket.socket(socket.AF_UNIX) as listener, instance_console.opened(folder / "console") as errors:
        listener.bind(str(machine.control))
        listener.listen(1)
        # It ends with tare: the journal does not name it.
        argv = [*processes.WITH_TARE, "env", f"TMPDIR={folder}", *command(machine)]
        process = processes.start(argv, stdout=errors, stderr=errors)
        try:
            with accept(listener, lambda: process.poll() is not None) as port:
                output = _read_all(port)
            process.wait(timeout=stretched(10))
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            raise ImageError("Docker in a guest takes too long to import the image", fix="try again") from error
        finally:
            processes.end(process)
    return output


def _read_all(port: socket.socket) -> bytes:
    """Return the output until its end, or `OUTPUT_CAP` bytes. Raises `TimeoutError` when `LIMIT_S` is over."""
    deadline = until(LIMIT_S)
    output = b""
    while len(output) < OUTPUT_CAP:
        if not select.select([port], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        piece = port.recv(4096)
        if not piece:
            break
        output += piece
    return output
