"""Boots of a black box by each monitor: QEMU, Firecracker, Xen and Solo5's tenders, by command line or a file.

A box may be a stranger's, whose guest may take its monitor over. So all but Xen's run in a jail (`jail`), where they
see their own files and the host's programs, as a user without rights.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import HostError, ImageError, PlatformError
from tare.host import distribution, processes, userns
from tare.host.network import bridge, dhcp
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image import guest
from tare.platforms import firecracker, xen
from tare.platforms.base import Availability
from tare.platforms.parts.common.attempt import system_folders
from tare.platforms.parts.common.jail import FIX as CONFINE_FIX
from tare.platforms.parts.common.jail import PROGRAM as CONFINER
from tare.platforms.parts.common.jail import Jail, command, within
from tare.platforms.parts.machines import microvm, vm

if TYPE_CHECKING:
    from tare.platforms.parts.machines.boxfile import Box


#: What a tender of Solo5's takes beside its guest.
TENDER_BYTES = 8 << 20
#: Paths in the jail: the monitor's program, its files, and the folder that it writes to. They stand for the box's own
#: names: QEMU parses commas in a name, and reads several modules out of one.
VMM, CONFIG, KERNEL, INITRD, DISK, SCRATCH = (
    *("/box/monitor", "/box/config.json"),
    *("/box/kernel", "/box/initrd", "/box/disk", "/var/tmp"),  # noqa: S108 (in the jail)
)
#: The loader's cache of libraries' paths.
LOADERS_CACHE = Path("/etc/ld.so.cache")
TUN = str(bridge.TUN)
#: seccomp(2) for QEMU itself: it starts no process, gains no rights and makes no obsolete call.
SANDBOX = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
#: The guest's console and QEMU's messages go to its stdout: a pipe of root's, which a jailed QEMU cannot reopen.
CONSOLE = ("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console")
#: Options of a device beyond its name: the I/O port that guests expect.
DEVICES = {"isa-debug-exit": "isa-debug-exit,iobase=0xf4,iosize=0x04"}


@dataclass(frozen=True, slots=True)
class GuestSetup:
    """The set-up of one machine: files, network, command line and CPUs."""

    name: str
    folder: Path  # for files that are removed with the instance
    link: str  # its end on the bridge; "": QEMU's own network, or none
    netdev: str  # the network, as QEMU's ``-netdev``; "": none
    mac: str
    cmdline: str
    cpus: Sequence[int]


@dataclass(frozen=True, slots=True)
class Boot:
    """The command that boots a box, as `vm.begin` takes it."""

    argv: Sequence[str]
    within: Sequence[str] = ()
    pass_fds: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class BoxMonitor:
    """One way to boot a box."""

    #: Whether it runs here, found by trying it.
    detect: Callable[[Box], Availability]
    #: Prepares the boot of a box. The `CleanupStack` owns all that it makes outside the folder; the `ExitStack` closes
    #: the descriptors that the machine inherits.
    ready: Callable[[Box, GuestSetup, CleanupStack, ExitStack], Boot]
    #: What the monitor itself takes of the instance's memory.
    own_bytes: int = 0
    #: Whether the guest's CPU time is accounted to the instance's group.
    accounted: bool = True
    #: Ends a machine that is no process of the host's.
    off: Callable[[GuestSetup], None] = lambda _: None


def qemu_command(box: Box, setup: GuestSetup, accel: str, disk: int | None = None) -> list[str]:
    """Return the command that boots a box with QEMU in its jail.

    ``disk``: a descriptor of the disk that it inherits.
    """
    rom = "" if box.card.endswith("-device") else ",romfile="
    board = ",".join(filter(None, (box.board, box.machine_options)))
    run_by = vm.accelerator(accel)
    if box.cpu is not None:
        run_by[run_by.index("-cpu") + 1] = box.cpu
    argv = [*run_by, "-M", board, "-smp", str(box.cpus), "-m", f"{box.memory}M"]
    argv += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", *SANDBOX, *CONSOLE]
    if setup.netdev:
        argv += ["-netdev", setup.netdev, "-device", f"{box.card},netdev=net,mac={setup.mac}{rom}"]
    if box.kernel is not None:
        argv += ["-kernel", KERNEL, "-append", setup.cmdline]
    if box.initrd is not None:
        argv += ["-initrd", INITRD]
    if disk is not None:
        argv += ["-add-fd", f"fd={disk},set=1"]
        argv += ["-drive", "if=none,id=disk,file=/dev/fdset/1,format=raw,snapshot=on"]
        argv += ["-device", f"{box.controller},drive=disk"]
    for device in box.devices:
        argv += ["-device", DEVICES.get(device, device)]
    if box.modern_virtio:
        argv += ["-global", "virtio-mmio.force-legacy=false"]
    return argv


def firecracker_settings(box: Box, setup: GuestSetup) -> dict[str, object]:
    """Return the configuration file that boots a box with Firecracker in its jail."""
    boot = {"kernel_image_path": KERNEL, "boot_args": setup.cmdline}
    if box.initrd is not None:
        boot["initrd_path"] = INITRD
    return {
        "machine-config": {"vcpu_count": box.cpus, "mem_size_mib": box.memory},
        "boot-source": boot,
        "drives": [] if box.disk is None else [microvm.drive("disk", DISK)],
        "network-interfaces": [{"iface_id": "eth0", "guest_mac": setup.mac, "host_dev_name": setup.link}]
        if setup.link
        else [],
    }


def tender_command(box: Box, setup: GuestSetup) -> list[str]:
    """Return the arguments of a tender of Solo5's that boots a box.

    The command line's words are split as a shell would.
    """
    argv = [f"--mem={box.memory}"]
    if setup.link:
        argv += [f"--net:{box.net_name}={setup.link}", f"--net-mac:{box.net_name}={setup.mac}"]
    if box.disk is not None:
        argv += [f"--block:{box.disk_name}={DISK}"]
    return [*argv, "--", KERNEL, *shlex.split(setup.cmdline)]


def tender(vmm: str) -> str:
    """Return the name of Solo5's program that runs a unikernel, such as ``solo5-hvt``."""
    return f"solo5-{vmm}"


def xen_domain(box: Box, setup: GuestSetup, disks: Sequence[str]) -> xen.Domain:
    """Return the guest that boots a box on Xen."""
    return xen.Domain(
        name=setup.name,
        kernel=setup.folder / "kernel",
        initramfs=None if box.initrd is None else setup.folder / "initrd",
        words=[setup.cmdline],
        memory_bytes=box.memory << 20,
        cpus=setup.cpus,
        vcpus=box.cpus,
        disks=disks,
        link=setup.link,
        mac=setup.mac,
        kind=box.board,
    )


def _confinable(detect: Callable[[Box], Availability]) -> Callable[[Box], Availability]:
    """Add to a monitor's detection a check that jails can be made here."""

    def detected(box: Box) -> Availability:
        if processes.find(CONFINER) is None:
            return Availability(False, reason=f"{CONFINER} is not installed", fix=CONFINE_FIX)
        if processes.run(["unshare", "--user", "true"], time_limit_s=10).code != 0:
            return Availability(False, reason="no user namespace can be made", fix=userns.FIX)
        return detect(box)

    return detected


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
    """Raise `HostError` for what the box's network lacks on this host."""
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


def _ready_tender(box: Box, setup: GuestSetup, cleanup: CleanupStack, opened: ExitStack) -> Boot:  # noqa: ARG001 (as all)
    own = _Needs(VMM, read={VMM: _program(tender(box.vmm))}, kvm=box.vmm == "hvt")
    return _jailed(box, setup, cleanup, own, tender_command(box, setup))


def _ready_qemu(box: Box, setup: GuestSetup, cleanup: CleanupStack, opened: ExitStack) -> Boot:
    written = setup.folder / "written"  # what is written to the disk goes to a nameless file there
    written.mkdir()
    userns.give(written)
    accel = vm.accelerated(guest.ensure())[0]
    disk = None if box.disk is None else _opened(box, "disk", opened)
    own = _Needs(vm.PROGRAM, written={SCRATCH: written}, kvm=accel == "kvm", disk=False)
    boot = _jailed(box, setup, cleanup, own, qemu_command(box, setup, accel, disk))
    return replace(boot, pass_fds=() if disk is None else (disk,))


def _ready_firecracker(box: Box, setup: GuestSetup, cleanup: CleanupStack, opened: ExitStack) -> Boot:  # noqa: ARG001 (as all)
    file = setup.folder / "config.json"
    file.write_text(json.dumps(firecracker_settings(box, setup)))
    file.chmod(0o444)
    own = _Needs(VMM, read={VMM: _program(firecracker.PROGRAM), CONFIG: file})
    return _jailed(box, setup, cleanup, own, [*firecracker.QUIET, "--no-api", "--config-file", CONFIG])


def _ready_xen(box: Box, setup: GuestSetup, cleanup: CleanupStack, opened: ExitStack) -> Boot:  # noqa: ARG001 (as all)
    brought = {name: _brought(box, name, setup.folder) for name in box.files}
    disks = [xen.loop_device(cleanup, brought["disk"])] if "disk" in brought else []
    file = setup.folder / "config"
    file.write_text(xen.config(xen_domain(box, setup, disks)))
    cleanup.own(removers.xen_domain(setup.name))
    return Boot([*xen.CONSOLE, str(file)])


@dataclass(frozen=True, slots=True)
class _Needs:
    """A monitor's own part of its jail, beside the box's files; fields as of `Jail`."""

    program: str
    read: Mapping[str, Path] = field(default_factory=dict)
    written: Mapping[str, Path] = field(default_factory=dict)
    kvm: bool = True
    disk: bool = True  # whether it gets a copy of the disk, which it may write to


def _jailed(box: Box, setup: GuestSetup, cleanup: CleanupStack, own: _Needs, words: Sequence[str]) -> Boot:
    """Start a monitor with these arguments in a jail with the box's files, as a user without rights."""
    users = setup.folder / "users"
    with userns.new(cleanup, users):
        pass
    read, written = dict(own.read), dict(own.written)
    for name in box.files.keys() - ({"disk"} if not own.disk else set()):
        file = _brought(box, name, setup.folder)
        file.chmod(0o600 if name == "disk" else 0o444)
        if name == "disk":
            userns.give(file)
        (written if name == "disk" else read)[f"/box/{name}"] = file
    devices = ["/dev/null", "/dev/urandom", *((TUN,) if setup.link else ()), *((vm.KVM,) if own.kvm else ())]
    system = [str(path) for path in (*system_folders(), LOADERS_CACHE) if path.exists()]
    jail = Jail(own.program, users, system, read, written, devices, capabilities=())
    # Root's environment may hold secrets, which a guest that takes over its monitor could read.
    environment = ("env", "-i", f"PATH={os.defpath}:/usr/sbin:/usr/local/bin", f"TMPDIR={SCRATCH}")
    return Boot([*environment, *command(jail, words)], within(jail))


def _program(name: str) -> Path:
    return Path(processes.find(name) or name).resolve()


def _opened(box: Box, name: str, opened: ExitStack) -> int:
    """Return a descriptor of a box's file, closed with ``opened``. Raises `PlatformError` where it has gone."""
    try:
        descriptor = box.opened(name)
    except OSError as error:
        raise PlatformError(f"{name}: {box.files[name]} cannot be read: {error.strerror}") from error
    if descriptor is None:
        raise PlatformError(f"{name}: {box.files[name]} is not there any more, or is a link now")
    opened.callback(os.close, descriptor)
    return descriptor


def _brought(box: Box, name: str, folder: Path) -> Path:
    """Return a copy of a box's file in an instance's folder, by the field's name. Raises `PlatformError`."""
    with ExitStack() as opened:
        source = Path(f"/proc/{os.getpid()}/fd/{_opened(box, name, opened)}")
        return vm.copied(source, folder / name)


_TENDER = BoxMonitor(_confinable(_detect_tender), _ready_tender, own_bytes=TENDER_BYTES)
MONITORS: Mapping[str, BoxMonitor] = {
    "hvt": _TENDER,
    "spt": _TENDER,
    "qemu": BoxMonitor(_confinable(_detect_qemu), _ready_qemu, vm.MONITOR_BYTES),
    "firecracker": BoxMonitor(
        _confinable(lambda _: firecracker.PLATFORMS[0].detect()),
        _ready_firecracker,
        own_bytes=firecracker.MONITOR_BYTES,
    ),
    "xen": BoxMonitor(
        lambda _: xen.PLATFORMS[0].detect(), _ready_xen, accounted=False, off=lambda setup: xen.off(setup.name)
    ),
}
