"""How each monitor boots a black box: QEMU, Firecracker and Xen, by command line or by a file that is written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import HostError, ImageError, PlatformError
from tare.host import distribution, processes
from tare.host.network import bridge
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image import guest
from tare.platforms import firecracker, xen
from tare.platforms.base import Availability
from tare.platforms.parts import microvm, vm
from tare.platforms.parts.machine import SERIAL

if TYPE_CHECKING:
    from tare.platforms.parts.boxfile import Box


@dataclass(frozen=True, slots=True)
class GuestSetup:
    """What tare gives to one machine: files, network, command line and CPUs."""

    name: str
    folder: Path  # for files that are removed with the instance
    link: str  # its end on the bridge; "": QEMU's own network
    netdev: str  # the network, as QEMU's ``-netdev``
    mac: str
    cmdline: str
    cpus: Sequence[int]


@dataclass(frozen=True, slots=True)
class Monitor:
    """One way to boot a box."""

    #: Whether it runs here, found by trying it.
    detect: Callable[[Box], Availability]
    #: The command that boots a box. What it makes beside files in the folder is owned by the `CleanupStack`.
    ready: Callable[[Box, GuestSetup, CleanupStack], list[str]]
    #: What the monitor itself takes of the instance's memory.
    own_bytes: int = 0
    #: Whether the guest's CPU time is accounted to the instance's group.
    accounted: bool = True
    #: Ends a machine that is no process of the host's.
    off: Callable[[GuestSetup], None] = lambda _: None


def qemu_command(box: Box, setup: GuestSetup, accel: str) -> list[str]:
    """The command that boots a box with QEMU."""
    rom = "" if box.network.endswith("-device") else ",romfile="
    argv = [vm.PROGRAM, *vm.accelerator(accel), "-M", box.board, "-smp", str(box.cpus), "-m", f"{box.memory}M"]
    argv += ["-nodefaults", "-display", "none", "-no-reboot"]
    argv += SERIAL
    argv += ["-netdev", setup.netdev, "-device", f"{box.network},netdev=net,mac={setup.mac}{rom}"]
    if box.kernel is not None:
        argv += ["-kernel", str(box.kernel), "-append", setup.cmdline]
    if box.initrd is not None:
        argv += ["-initrd", str(box.initrd)]
    if box.disk is not None:
        argv += ["-drive", f"if=none,id=disk,file={box.disk},format={disk_format(box.disk)},snapshot=on"]
        argv += ["-device", f"{box.disk_device},drive=disk"]
    return argv


def firecracker_settings(box: Box, setup: GuestSetup, disk: Path | None) -> dict[str, object]:
    """The configuration file that boots a box with Firecracker."""
    boot = {"kernel_image_path": str(box.kernel), "boot_args": setup.cmdline}
    if box.initrd is not None:
        boot["initrd_path"] = str(box.initrd)
    return {
        "machine-config": {"vcpu_count": box.cpus, "mem_size_mib": box.memory},
        "boot-source": boot,
        "drives": [] if disk is None else [microvm.drive("disk", str(disk))],
        "network-interfaces": [{"iface_id": "eth0", "guest_mac": setup.mac, "host_dev_name": setup.link}],
    }


def xen_domain(box: Box, setup: GuestSetup, disks: Sequence[str]) -> xen.Domain:
    """The guest that boots a box on Xen."""
    assert box.kernel is not None  # checked with the file
    return xen.Domain(
        name=setup.name,
        kernel=box.kernel,
        initramfs=box.initrd,
        words=setup.cmdline.split(),
        memory_bytes=box.memory << 20,
        cpus=setup.cpus,
        vcpus=box.cpus,
        disks=disks,
        link=setup.link,
        mac=setup.mac,
        kind=box.board,
    )


def disk_format(disk: Path) -> str:
    """qcow2 by its mark, else raw."""
    with disk.open("rb") as file:
        return "qcow2" if file.read(4) == b"QFI\xfb" else "raw"


def _detect_qemu(box: Box) -> Availability:
    if processes.find(vm.PROGRAM) is None:
        return Availability(False, reason="QEMU is not installed", fix=distribution.install("qemu-system-x86"))
    if os.geteuid() != 0:
        return Availability(False, reason="control groups and TAPs need root", fix="run tare as root (sudo)")
    try:
        lacking = bridge.no_tun() if box.link == "tap" else None
        if lacking is not None:
            raise lacking
        accel, why = vm.accelerated(guest.ensure())
    except (ImageError, HostError) as error:
        return Availability(False, reason=error.what, fix=error.fix or "")
    shown = processes.run([vm.PROGRAM, "--version"], time_limit_s=10).text.split("\n")[0]
    version = shown.removeprefix("QEMU emulator version ").split()[0]
    return Availability(True, version=f"{version}, {accel}", details={"accelerator": f"{accel}: {why}"})


def _ready_qemu(box: Box, setup: GuestSetup, cleanup: CleanupStack) -> list[str]:  # noqa: ARG001 (another monitor needs it)
    # TMPDIR: what is written to the disk goes to a nameless file there.
    return ["env", f"TMPDIR={setup.folder}", *qemu_command(box, setup, vm.accelerated(guest.ensure())[0])]


def _ready_firecracker(box: Box, setup: GuestSetup, cleanup: CleanupStack) -> list[str]:  # noqa: ARG001 (another monitor needs it)
    file = setup.folder / "config.json"
    file.write_text(json.dumps(firecracker_settings(box, setup, _copied(box, setup))))
    return [firecracker.PROGRAM, *firecracker.QUIET, "--no-api", "--config-file", str(file)]


def _ready_xen(box: Box, setup: GuestSetup, cleanup: CleanupStack) -> list[str]:
    disk = _copied(box, setup)
    disks = [] if disk is None else [xen.loop_device(cleanup, disk)]
    file = setup.folder / "config"
    file.write_text(xen.config(xen_domain(box, setup, disks)))
    cleanup.own(removers.xen_domain(setup.name))
    return [*xen.CONSOLE, str(file)]


def _copied(box: Box, setup: GuestSetup) -> Path | None:
    """A copy of the disk, which is not to be written. Raises `PlatformError`."""
    if box.disk is None:
        return None
    if disk_format(box.disk) != "raw":
        raise PlatformError(f"{box.vmm} takes raw disks only", fix=f"qemu-img convert -O raw {box.disk} DISK")
    return vm.copied(box.disk, setup.folder / "disk")


MONITORS: Mapping[str, Monitor] = {
    "qemu": Monitor(_detect_qemu, _ready_qemu, vm.MONITOR_BYTES),
    "firecracker": Monitor(
        lambda _: firecracker.PLATFORMS[0].detect(), _ready_firecracker, own_bytes=firecracker.MONITOR_BYTES
    ),
    "xen": Monitor(
        lambda _: xen.PLATFORMS[0].detect(), _ready_xen, accounted=False, off=lambda setup: xen.off(setup.name)
    ),
}
