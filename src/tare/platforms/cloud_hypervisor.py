"""Cloud Hypervisor: a small virtual machine by KVM with virtio over PCI, told by its command line.

The agent is the guest's PID 1 and connects to the host by a virtio socket, which is forwarded as Firecracker's is. The
program is in no package registry: a user brings it on PATH. By its documentation; no guest of it has run here yet.
"""

from __future__ import annotations

import functools
import re
import socket
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tare.host import processes
from tare.host.resources.journal import CleanupStack
from tare.image import guest
from tare.image.image_build import Image
from tare.platforms import firecracker
from tare.platforms.base import Availability, Instance, LaunchSpec, Platform, Prepared
from tare.platforms.parts.common import left_open
from tare.platforms.parts.common.callback import StartedMachine, come_up
from tare.platforms.parts.machines import vm
from tare.platforms.parts.machines.microvm import GUEST_CID, HOST_CID, PORT, MicroVm, listening

PROGRAM = KIND = "cloud-hypervisor"
#: What the monitor itself may take beside the guest's memory.
MONITOR_BYTES = 64 << 20
#: The releases from 30 to 35 take each disk as an option of its own; what older ones take was not looked at.
MIN_RELEASE = (36, 0)
#: Since this release the first sector of a disk whose format it had to find out is read-only, which ext4 writes with
#: its superblock; earlier ones know no word for the format.
NAMES_FORMAT = (50, 1)
#: A guest that restarts has ended: there is no other switch that every kernel has.
_KERNEL = ("console=ttyS0", "quiet", "reboot=k", "panic=-1")
FIX = "put the project's release binary (cloud-hypervisor) on PATH: no package registry has it"
LAB = "try it in the lab: tare lab run --file CLOUD-HYPERVISOR -- tare run -p cloud-hypervisor"


class CloudHypervisor(Platform):
    """A machine with two virtio disks, a TAP and a virtio socket; what it writes goes to raw files on the host."""

    name = "cloud-hypervisor"
    title = "Cloud Hypervisor, told by its command line"
    network_path = "client, bridge, TAP, virtio-net"
    shares_data = False
    disk_cache = vm.DISK_CACHE
    own_kernel = True
    by_default = False
    open_by_design = left_open.BY_BRIDGE
    monitor_bytes = MONITOR_BYTES
    no_direct_io = f"{vm.NO_DIRECT_IO}, unless it is told direct=on"
    not_honoured = (vm.OWN_VOLUME, vm.monitor_beyond_limit(MONITOR_BYTES))

    def __init__(self) -> None:
        self._release = MIN_RELEASE  # until it is detected

    def detect(self) -> Availability:
        """Look for the program, and boot a trivial guest by it."""
        if processes.find(PROGRAM) is None:
            return Availability(False, reason=f"no {PROGRAM} binary on PATH", fix=FIX)
        shown = processes.run([PROGRAM, "--version"], time_limit_s=10).text.strip()
        if release(shown) < MIN_RELEASE:
            why = f"it takes Cloud Hypervisor {MIN_RELEASE[0]} or newer: {shown!r}"
            return Availability(False, reason=why, fix=FIX)
        self._release = release(shown)
        answer = firecracker.tried(KIND, partial(complaint, processes.find(PROGRAM) or PROGRAM), LAB)
        return replace(answer, version=shown.split()[-1]) if answer.available else answer

    def prepare(self, image: Image) -> Prepared:
        """Return the image as an ext4 filesystem; each guest gets a copy that is thrown away."""
        return vm.prepared(vm.root_disk(image), guest.ensure(KIND), PROGRAM)

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Make TAP, disks and socket, and start the machine."""
        endpoint, tap = spec.network.new_tap(cleanup, spec.id)
        folder = spec.space.data
        boot_files = guest.ensure(KIND)
        machine = MicroVm(
            cpus=len(spec.resources.cpus),
            memory_bytes=spec.resources.memory_bytes,
            kernel=str(boot_files.kernel),
            initramfs=str(boot_files.initramfs),
            root=str(vm.copied(vm.root_disk(spec.image), folder / "root.ext4")),
            data=str(vm.data_volume(folder)),
            socket=str(folder / "v"),
            tap=tap,
            mac=endpoint.mac,
            address=f"{endpoint.address}/{spec.network.prefix}",
            gateway=spec.network.host,
            agent=spec.agent_argv()[1:],
        )
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(listening(machine.socket))
            listener.listen(1)
            begun = StartedMachine(*vm.begin(spec, command(machine, self._release)), what="Cloud Hypervisor")
            instance = come_up(spec, listener, begun, endpoint.address)
        return replace(instance, guest_bytes=machine.memory_bytes)


def release(shown: str) -> tuple[int, int]:
    """Its number, from what it says to ``--version`` ("cloud-hypervisor v51.0", "... v50.1-dirty"); (0, 0): none."""
    numbers = re.search(r"\bv?(\d+)\.(\d+)", shown)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def command(machine: MicroVm, version: tuple[int, int]) -> list[str]:
    """Return the command line of a machine, as the project's documentation has it for a release."""
    form = ",image_type=raw" if version >= NAMES_FORMAT else ""
    return [
        *booted(machine.kernel, machine.initramfs, words(machine)),
        *("--cpus", f"boot={machine.cpus}", "--memory", f"size={machine.memory_bytes >> 20}M"),
        *("--disk", f"path={machine.root}{form}", f"path={machine.data}{form}"),
        *("--net", f"tap={machine.tap},mac={machine.mac}"),
        *("--vsock", f"cid={GUEST_CID},socket={machine.socket}"),
    ]


def words(machine: MicroVm) -> str:
    """Return the kernel's command line; what the agent is to do comes last."""
    boot = [*_KERNEL, "tare.channel=vsock", f"tare.ip={machine.address}", f"tare.gw={machine.gateway}"]
    return " ".join([*boot, "--", *machine.agent, "--host", f"vsock:{HOST_CID}:{PORT}"])


def booted(kernel: str, initramfs: str | None, cmdline: str, program: str = PROGRAM) -> Sequence[str]:
    """Return the start of a command line: what boots, with the serial port on standard output and no other console."""
    packed = [] if initramfs is None else ["--initramfs", initramfs]
    boot = ["--kernel", kernel, *packed, "--cmdline", cmdline]
    return [program, *boot, "--serial", "tty", "--console", "off"]


@functools.cache
def complaint(program: str, made: guest.Guest) -> str:
    """Boot a guest that prints a line once it runs; "" when it does, else what is wrong."""
    probe = " ".join([*_KERNEL, "tare.probe"])
    argv = [*booted(str(made.kernel), str(made.initramfs), probe, program), "--cpus", "boot=1", "--memory", "size=256M"]
    tried = processes.run(argv, time_limit_s=vm.KVM_LIMIT_S)
    return vm.why_not(tried)


PLATFORMS = (CloudHypervisor(),)
