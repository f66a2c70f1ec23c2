"""How each monitor boots a black box: QEMU, Firecracker, Xen and Solo5's tenders, by command line or a file."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import HostError, ImageError, PlatformError
from tare.host import distribution, processes
from tare.host.network import bridge, dhcp
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image import guest
from tare.platforms import firecracker, xen
from tare.platforms.base import Availability
from tare.platforms.parts.machines import microvm, vm
from tare.platforms.parts.machines.machine import SERIAL

if TYPE_CHECKING:
    from tare.platforms.parts.machines.boxfile import Box


#: What a tender of Solo5's takes beside its guest.
TENDER_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class GuestSetup:
    """What tare gives to one machine: files, network, command line and CPUs."""

    name: str
    folder: Path  # for files that are removed with the instance
    link: str  # its end on the bridge; "": QEMU's own network, or none
    netdev: str  # the network, as QEMU's ``-netdev``; "": none
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
    rom = "" if box.card.endswith("-device") else ",romfile="
    board = ",".join(filter(None, (box.board, box.machine_options)))
    run_by = vm.accelerator(accel)
    if box.cpu is not None:
        run_by[run_by.index("-cpu") + 1] = box.cpu
    argv = [vm.PROGRAM, *run_by, "-M", board, "-smp", str(box.cpus), "-m", f"{box.memory}M"]
    argv += ["-nodefaults", "-display", "none", "-no-reboot"]
    argv += SERIAL
    if setup.netdev:
        argv += ["-netdev", setup.netdev, "-device", f"{box.card},netdev=net,mac={setup.mac}{rom}"]
    if box.kernel is not None:
        argv += ["-kernel", str(box.kernel), "-append", setup.cmdline]
    if box.initrd is not None:
        argv += ["-initrd", str(box.initrd)]
    if box.disk is not None:
        argv += ["-drive", f"if=none,id=disk,file={box.disk},format={disk_format(box.disk)},snapshot=on"]
        argv += ["-device", f"{box.controller},drive=disk"]
    return [*argv, *box.arguments]


def firecracker_settings(box: Box, setup: GuestSetup, disk: Path | None) -> dict[str, object]:
    """The configuration file that boots a box with Firecracker."""
    boot = {"kernel_image_path": str(box.kernel), "boot_args": setup.cmdline}
    if box.initrd is not None:
        boot["initrd_path"] = str(box.initrd)
    return {
        "machine-config": {"vcpu_count": box.cpus, "mem_size_mib": box.memory},
        "boot-source": boot,
        "drives": [] if disk is None else [microvm.drive("disk", str(disk))],
        "network-interfaces": [{"iface_id": "eth0", "guest_mac": setup.mac, "host_dev_name": setup.link}]
        if setup.link
        else [],
    }


def tender_command(box: Box, setup: GuestSetup, disk: Path | None) -> list[str]:
    """The command that boots a box with a tender of Solo5's; the command line's words are split as a shell would."""
    argv = [tender(box.vmm), f"--mem={box.memory}"]
    if setup.link:
        argv += [f"--net:{box.net_name}={setup.link}", f"--net-mac:{box.net_name}={setup.mac}"]
    if disk is not None:
        argv += [f"--block:{box.disk_name}={disk}"]
    return [*argv, "--", str(box.kernel), *shlex.split(setup.cmdline)]


def tender(vmm: str) -> str:
    """The name of Solo5's program that runs a unikernel, such as ``solo5-hvt``."""
    return f"solo5-{vmm}"


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
    """The format of a disk's file: ``qcow2`` by its first bytes, else ``raw``."""
    with disk.open("rb") as file:
        return "qcow2" if file.read(4) == b"QFI\xfb" else "raw"


def _detect_qemu(box: Box) -> Availability:
    if processes.find(vm.PROGRAM) is None:
        return Availability(False, reason="QEMU is not installed", fix=distribution.install("qemu-system-x86"))
    try:
        _need_network(box)
        accel, why = vm.accelerated(guest.ensure())
    except (ImageError, HostError) as error:
        return Availability(False, reason=error.what, fix=error.fix or "")
    return Availability(True, version=f"{vm.version()}, {accel}", details={"accelerator": f"{accel}: {why}"})


def _need_network(box: Box) -> None:
    """Raises `HostError` for what the box's network lacks on this host."""
    lacking = bridge.no_tun() if box.link == "tap" else None
    lacking = lacking or (dhcp.missing() if box.dhcp else None)
    if lacking is not None:
        raise lacking


def _detect_tender(box: Box) -> Availability:
    program = tender(box.vmm)
    if processes.find(program) is None:
        fix = f"put {program} on PATH: Solo5's own build has it, or `opam install solo5`; Debian has no package"
        return Availability(False, reason=f"{program} is not installed", fix=fix)
    if box.vmm == "hvt" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return Availability(
            False, reason="/dev/kvm cannot be opened", fix='vmm = "spt", with the same program built for it'
        )
    try:
        _need_network(box)
    except HostError as error:
        return Availability(False, reason=error.what, fix=error.fix or "")
    finished = processes.run([program, "--version"], time_limit_s=10)
    shown = (finished.stdout + finished.stderr).decode(errors="replace").split("\n")[0]
    if "version " not in shown:
        return Availability(False, reason=f"`{program} --version` fails", fix="build it anew for this host")
    return Availability(True, version=shown.partition("version ")[2].strip())


def _ready_tender(box: Box, setup: GuestSetup, cleanup: CleanupStack) -> list[str]:  # noqa: ARG001 (another monitor needs it)
    return tender_command(box, setup, _copied(box, setup))


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


_TENDER = Monitor(_detect_tender, _ready_tender, own_bytes=TENDER_BYTES)
MONITORS: Mapping[str, Monitor] = {
    "hvt": _TENDER,
    "spt": _TENDER,
    "qemu": Monitor(_detect_qemu, _ready_qemu, vm.MONITOR_BYTES),
    "firecracker": Monitor(
        lambda _: firecracker.PLATFORMS[0].detect(), _ready_firecracker, own_bytes=firecracker.MONITOR_BYTES
    ),
    "xen": Monitor(
        lambda _: xen.PLATFORMS[0].detect(), _ready_xen, accounted=False, off=lambda setup: xen.off(setup.name)
    ),
}
