"""QEMU: a full virtual machine, by KVM where that works and else by emulation (TCG). Variants are machine types.

The agent is the guest's PID 1 and speaks over a virtio-serial port; QEMU connects it to a socket on which the host
listens before the guest exists, so that the guest never sees a false end of its input.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Sequence

from tare.errors import HostError, ImageError, PlatformError
from tare.host import processes
from tare.host.journal import Belongings
from tare.image import forms, guest
from tare.image.build import Image
from tare.platforms.base import Address, Availability, Instance, Instant, LaunchSpec, Platform, Prepared
from tare.platforms.machine import Machine, command
from tare.platforms.marks import FirstByte, Ping
from tare.platforms.vm import MONITOR_BYTES, PROGRAM, ROOT_BYTES, MachineStream, accelerated, accept, data_volume

__all__ = ("PLATFORMS", "PROGRAM", "ROOT_BYTES", "MachineStream", "Qemu", "accelerated", "accept", "data_volume")


class Qemu(Platform):
    """A virtual machine of its own kernel; what it writes goes to raw files on the host's disk."""

    shares_data = False
    own_kernel = True
    by_default = False  # a start takes seconds without KVM
    network_path = "client, bridge, TAP, virtio-net"
    not_honoured = (
        "the data volume is an ext4 of its own, on a raw file on the host's disk",
        f"the memory limit holds for guest and monitor together: the guest has {MONITOR_BYTES >> 20} MiB less",
        "dropping cached data drops the host's pages, not the guest's",
    )

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.title = f"QEMU, machine {kind}"
        self._kind = kind

    def detect(self) -> Availability:
        """Look for QEMU, get the guest's kernel, and find out whether KVM runs it."""
        if processes.find(PROGRAM) is None:
            return Availability(False, reason="QEMU is not installed", fix="apt-get install qemu-system-x86")
        if os.geteuid() != 0:
            return Availability(False, reason="a TAP needs root", fix="run tare as root (sudo)")
        try:
            accel, why = accelerated(guest.ensure())
        except (ImageError, HostError) as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        version = processes.run([PROGRAM, "--version"], time_limit_s=10).text.split("\n")[0]
        details = {"accelerator": f"{accel}: {why}", "guest kernel": guest.ensure().release}
        shown = version.removeprefix("QEMU emulator version ").split()[0]
        return Availability(True, version=f"{shown}, {accel}", details=details)

    def prepare(self, image: Image) -> Prepared:
        """The image as an ext4 filesystem; guests write to a copy that is thrown away."""
        disk = forms.ext4(image, ROOT_BYTES)
        made = guest.ensure()
        sizes = [forms.disk_bytes(path) for path in (disk, made.kernel, made.initramfs)]
        return Prepared("ext4 file, kernel and initramfs", sum(sizes))

    def launch(self, spec: LaunchSpec, things: Belongings) -> Instance:
        """Make TAP, data volume and control socket, and start the machine."""
        endpoint, tap = spec.network.new_tap(things, spec.id)
        made = guest.ensure()
        control = spec.space.folder / "control"
        machine = Machine(
            kind=self._kind,
            accel=accelerated(made)[0],
            cpus=len(spec.resources.cpus),
            memory_bytes=spec.resources.memory_bytes - MONITOR_BYTES,
            kernel=made.kernel,
            initramfs=made.initramfs,
            root=forms.ext4(spec.image, ROOT_BYTES),
            data=data_volume(spec.space.data),
            control=control,
            console=spec.space.log,
            tap=tap,
            mac=endpoint.mac,
            address=f"{endpoint.address}/{spec.network.prefix}",
            gateway=spec.network.host,
            agent=spec.agent_argv()[1:],
        )
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(control))
            listener.listen(1)
            started, process = _start(spec, command(machine))
            connection = _connected(listener, process)
        stream = MachineStream(connection, process)
        first_byte = FirstByte(stream.fileno())
        ping = Ping(endpoint.address) if spec.measured else None
        address = Address(endpoint.address, spec.port, spec.port, endpoint.address)
        return Instance(spec, stream, started, address, first_byte, ping)


def _connected(listener: socket.socket, process: subprocess.Popen[bytes]) -> socket.socket:
    try:
        return accept(listener, lambda: process.poll() is not None)
    except PlatformError:
        processes.kill_group(process)
        process.wait()
        raise


def _start(spec: LaunchSpec, argv: Sequence[str]) -> tuple[Instant, subprocess.Popen[bytes]]:
    # What the guest writes to its root is kept in a file there.
    full = ["env", f"TMPDIR={spec.space.folder}", *argv]
    errors = (spec.space.folder / "qemu.log").open("wb")
    with errors:
        nothing = subprocess.DEVNULL
        procs = spec.group.leaf("tool")
        held = processes.start_held(full, stdin=nothing, stdout=nothing, stderr=errors, cgroup_procs=procs)
    started = Instant.now()
    held.go()
    return started, held.process


PLATFORMS = (Qemu("qemu", "q35"),)
