"""QEMU: a full virtual machine, by KVM; the names that end in ``-tcg`` by emulation. Variants are machine types.

The agent is the guest's PID 1 and speaks over a virtio-serial port; QEMU connects it to a socket on which the host
listens before the guest exists, so that the guest never sees a false end of its input.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from tare.errors import HostError, ImageError, PlatformError, UnsupportedError
from tare.host import distribution, processes
from tare.host.network import bridge
from tare.host.resources.journal import CleanupStack
from tare.image import guest
from tare.image.image_build import Image
from tare.platforms.base import (
    Address,
    Availability,
    Instance,
    Instant,
    LaunchSpec,
    Life,
    Observed,
    Platform,
    Prepared,
)
from tare.platforms.parts.common import left_open
from tare.platforms.parts.common.sidecar import Helper, with_helper
from tare.platforms.parts.machines import passt, virtiofs, vm
from tare.platforms.parts.machines.channel import GuestChannel
from tare.platforms.parts.machines.disks import DiskIo, disk_io, overlay
from tare.platforms.parts.machines.machine_life import MachineLife
from tare.platforms.parts.machines.qemu_line import Plug, QemuMachine, command, stream, tap, user
from tare.platforms.watchers.marks import EchoPing, FirstByte

#: Networks of a program that opens the guest's connections itself, in words. It runs in a network namespace on tare's
#: bridge: on the host's own network the guest would reach all that a program of the host's does, its loopback too.
#: slirp's `restrict=on` is no way: it keeps the guest from the client and from tare's marks of a start too.
WITHOUT_TAP = {"passt": "passt", "slirp": "QEMU's user-mode network (slirp)"}
#: The guest's MAC, address and gateway on such a network, which each machine has alone.
USER_NETWORK = ("02:7a:0a:00:02:0f", "10.0.2.15/24", "10.0.2.2")


@dataclass(frozen=True, slots=True)
class MachineKind:
    """Machine type, accelerator and network of a variant."""

    machine: str = "q35"
    accel: str = "kvm"  # or "tcg", emulation; never the one in place of the other
    network: Literal["tap", "slirp", "passt"] = "tap"  # slirp: QEMU's own network stack
    cache: str = "none"  # how disks are opened; or "writeback", through the host's page cache
    shared: bool = False  # whether /data is a folder of the host's (virtiofs), and no disk
    direct: bool = False  # whether it boots from its disk by itself, by a kernel that has its drivers built in


class Qemu(Platform):
    """A virtual machine of its own kernel; what it writes goes to raw files on the host's disk."""

    shares_data = False
    own_kernel = True
    monitor_bytes = vm.MONITOR_BYTES
    by_default = False  # a start takes seconds by emulation
    years = MappingProxyType({2021: "6", 2022: "7", 2023: "8", 2024: "9", 2025: "10.0 10.1 10.2"})
    not_honoured: tuple[str, ...] = (vm.OWN_VOLUME, vm.monitor_beyond_limit(vm.MONITOR_BYTES))

    def __init__(self, name: str, kind: MachineKind) -> None:
        self.name = name
        without_tap = WITHOUT_TAP.get(kind.network)
        varied = (f", {without_tap}" if without_tap else "") + (", disks written back" if kind.cache != "none" else "")
        varied += ", /data by virtiofs" if kind.shared else ""
        varied += ", without an initramfs" if kind.direct else ""
        self.title = f"QEMU, machine {kind.machine}, {vm.BY[kind.accel]}{varied}"
        self.disk_cache = vm.DIRECT_DISK_CACHE if kind.cache == "none" else vm.DISK_CACHE
        self.no_direct_io = "" if kind.cache == "none" else vm.NO_DIRECT_IO
        self.network_path = f"client, bridge, {f'veth, {without_tap}' if without_tap else 'TAP'}, virtio-net"
        self.open_by_design = {} if without_tap else left_open.BY_BRIDGE
        if kind.shared:
            self.shares_data, self.disk_cache = True, virtiofs.CACHE
            self.not_honoured = tuple(limit for limit in self.not_honoured if limit != vm.OWN_VOLUME)
        self._kind = kind
        self._lives: dict[Path, MachineLife] = {}  # by where their snapshots are to be
        self.stand_in = vm.emulated_name(name) if kind.accel == "kvm" else ""

    def detect(self) -> Availability:
        """Look for QEMU, get the guest's kernel, and find out whether KVM runs it where that is to."""
        if processes.find(vm.PROGRAM) is None:
            return Availability(False, reason="QEMU is not installed", fix=distribution.install("qemu-system-x86"))
        if processes.find("qemu-img") is None:
            return Availability(False, reason="qemu-img is not installed", fix=distribution.install("qemu-utils"))
        lacking = bridge.no_tun() if self._kind.network == "tap" else None
        if lacking is not None:
            return Availability(False, reason=lacking.what, fix=lacking.fix or "")
        shown = vm.version()
        try:
            boot_files = self._guest()
            kernel = self._boots()
            beside_it = {"virtiofsd": virtiofs.located().version} if self._kind.shared else {}
            if self._kind.network == "passt":
                beside_it["passt"] = passt.require(shown, *USER_NETWORK[1:])
            why = "as it is called" if self._kind.accel == "tcg" else vm.need_kvm(boot_files, self.stand_in)
            disks = self._disks()
        except (ImageError, HostError) as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        details = {
            "accelerator": f"{self._kind.accel}: {why}",
            "guest kernel": kernel.release,
            "disks": disks.described(),
            "network back end": self._back_end(),
            **beside_it,
        }
        return Availability(True, version=f"{shown}, {self._kind.accel}", details=details)

    def prepare(self, image: Image) -> Prepared:
        """Return the image as an ext4 filesystem; guests write to a copy that is thrown away."""
        return vm.prepared(self._root(image), self._boots(), vm.PROGRAM)

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Make network, data volume and control socket, and start the machine."""
        with contextlib.ExitStack() as ours:
            helper = self._helper(spec, ours)
            plug, address = self._plug(spec, cleanup, helper)
            machine = self._machine(spec, self._boots(), plug)
            listener = _listening(ours, machine.control)
            within = [] if self._kind.network == "tap" else bridge.entered(spec.id)
            started, process = _start(spec, machine, helper, within)
            connection = _connected(listener, process)
        stream = vm.MachineStream(connection, process)
        first_byte = FirstByte(stream.fileno())
        ping = EchoPing(address.ping) if spec.measured and address.ping else None
        return Instance(
            spec,
            stream,
            started,
            address,
            first_byte,
            ping,
            # What is shared with a daemon is mapped by both, in pieces.
            guest_bytes=0 if machine.shared else machine.memory_bytes,
        )

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """QEMU's command, its monitor (QMP), and the guest channel; the guest switches itself off when it is told.

        Raises `UnsupportedError` for other networks than a TAP, and for shared folders.
        """
        if self._kind.network != "tap" or self._kind.shared:
            raise UnsupportedError("tare knows the life of machines on a TAP without shared folders alone")
        plug, _ = self._plug(spec, cleanup, None)
        lived = self._lived(spec, plug, argv)
        return lived.life(self._until_closed(lived))

    def copy(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str], snapshot: Path) -> Life:
        """Return the snapshot's state and copies of its disks in another machine, as users clone a running one.

        Its TAP is off the bridge, as all copies have one address.
        """
        endpoint, name = spec.network.new_tap(cleanup, spec.id, plugged=False)
        inside = f"{endpoint.address}/{spec.network.prefix}"
        plug = Plug(tap(name, vhost=self._vhost() is None), endpoint.mac, inside, spec.network.host)
        lived = self._lived(spec, plug, argv)
        return lived.copy_of(self._lives[snapshot], self._until_closed(lived))

    def _lived(self, spec: LaunchSpec, plug: Plug, argv: Sequence[str]) -> MachineLife:
        folder = spec.space.folder
        machine = replace(self._machine(spec, self._boots(), plug), monitor=folder / "monitor")
        with contextlib.ExitStack() as on_failure:
            channel = GuestChannel(_listening(on_failure, machine.control), argv, limit_s=spec.start_limit_s)
            made = spec.made()
            on_failure.pop_all()
        return MachineLife(machine, folder / "monitor", channel, folder / "snapshot", made)

    def _until_closed(self, lived: MachineLife) -> Callable[[], None]:
        """Know a machine by the place of its snapshot until the returned function is called, which closes it."""
        self._lives[lived.saved] = lived

        def close() -> None:
            self._lives.pop(lived.saved, None)
            lived.channel.close()

        return close

    def observed(self, instance: Instance, read: Callable[[str], str]) -> Observed:
        """Return what is declared, and which back ends the machine's monitor has open."""
        return replace(super().observed(instance, read), facts=vm.back_ends(instance))

    def start_fix(self, console: bytes) -> str:
        """Return the fix for a machine that hung by emulation."""
        return vm.hang_fix(console) if self._kind.accel == "tcg" else ""

    def _guest(self) -> guest.Guest:
        return guest.ensure("virtiofs" if self._kind.shared else "virtio")

    def _boots(self) -> guest.Guest | guest.Direct:
        """Return what its machines boot."""
        return guest.direct() if self._kind.direct else self._guest()

    def _vhost(self) -> str | None:
        """Return why the host's kernel does not move the guest's packets; None: it does."""
        without_tap = WITHOUT_TAP.get(self._kind.network)
        if without_tap:
            return f"its network is {without_tap}"
        return "it is KVM's, and this machine is emulated" if self._kind.accel == "tcg" else vm.vhost()

    def _back_end(self) -> str:
        why = self._vhost()
        return "vhost-net, in the host's kernel" if why is None else f"QEMU, without vhost-net: {why}"

    def _disks(self) -> DiskIo:
        # An emulated microvm's bus has no notifier that another thread could wait for.
        threaded = not (self._kind.machine == "microvm" and self._kind.accel == "tcg")
        return disk_io(self._kind.cache, io_thread=threaded)

    def _helper(self, spec: LaunchSpec, ours: contextlib.ExitStack) -> Helper | None:
        """Return what runs beside the machine; its end of what connects them is open as long as ``ours``."""
        if self._kind.shared:
            listener = _listening(ours, _share(spec)).fileno()
            return Helper(virtiofs.command(virtiofs.located(), spec.space.data, listener), listener)
        if self._kind.network == "passt":
            passt_end, machine_end = (ours.enter_context(end).fileno() for end in socket.socketpair())
            words = passt.command(passt_end, spec.port, *USER_NETWORK[1:])
            return Helper(words, passt_end, machine_end)
        return None

    def _plug(self, spec: LaunchSpec, cleanup: CleanupStack, helper: Helper | None) -> tuple[Plug, Address]:
        without_tap = WITHOUT_TAP.get(self._kind.network)
        if without_tap:
            host, port = spec.network.new_namespace(cleanup, spec.id).address, spec.port
            machines = None if helper is None else helper.machines
            netdev = user(port) if machines is None else stream(machines)
            no_ping = f"{without_tap} answers no echo requests from outside"
            return Plug(netdev, *USER_NETWORK), Address(host, port, port, None, no_ping)
        endpoint, name = spec.network.new_tap(cleanup, spec.id)
        inside = f"{endpoint.address}/{spec.network.prefix}"
        address = Address(endpoint.address, spec.port, spec.port, endpoint.address)
        return Plug(tap(name, vhost=self._vhost() is None), endpoint.mac, inside, spec.network.host), address

    def _root(self, image: Image) -> Path:
        return vm.root_disk(image)

    def _machine(self, spec: LaunchSpec, boot_files: guest.Guest | guest.Direct, plug: Plug) -> QemuMachine:
        return QemuMachine(
            kind=self._kind.machine,
            accel=self._kind.accel,
            cpus=len(spec.resources.cpus),
            memory_bytes=spec.resources.memory_bytes,
            kernel=boot_files.kernel,
            initramfs=boot_files.initramfs if isinstance(boot_files, guest.Guest) else None,
            root=overlay(self._root(spec.image), spec.space.folder),
            data=None if self._kind.shared else vm.data_volume(spec.space.data),
            shared=_share(spec) if self._kind.shared else None,
            disks=self._disks(),
            control=spec.space.folder / "control",
            plug=plug,
            agent=spec.agent_argv()[1:],
        )


def _connected(listener: socket.socket, process: subprocess.Popen[bytes]) -> socket.socket:
    try:
        return vm.accept(listener, lambda: process.poll() is not None)
    except PlatformError:
        processes.end(process)
        raise


def _share(spec: LaunchSpec) -> Path:
    return spec.space.folder / "shared"


def _listening(ours: contextlib.ExitStack, place: Path) -> socket.socket:
    listener = ours.enter_context(socket.socket(socket.AF_UNIX))
    listener.bind(str(place))
    listener.listen(1)
    return listener


def _start(
    spec: LaunchSpec, machine: QemuMachine, helper: Helper | None, within: Sequence[str]
) -> tuple[Instant, subprocess.Popen[bytes]]:
    # What the guest writes to further disks goes to a temporary file there.
    argv = ["env", f"TMPDIR={spec.space.folder}", *command(machine)]
    if helper is None:
        return vm.begin(spec, argv, within)
    return vm.begin(spec, with_helper(helper, argv), within, pass_fds=helper.descriptors())


PLATFORMS = (
    Qemu("qemu", MachineKind()),
    Qemu("qemu-kvm", MachineKind()),  # its older name
    Qemu("qemu-microvm", MachineKind(machine="microvm")),
    Qemu("qemu-microvm-direct", MachineKind(machine="microvm", direct=True)),
    Qemu("qemu-microvm-direct-tcg", MachineKind(machine="microvm", accel="tcg", direct=True)),
    Qemu("qemu-microvm-tcg", MachineKind(machine="microvm", accel="tcg")),
    Qemu("qemu-passt", MachineKind(network="passt")),
    Qemu("qemu-passt-tcg", MachineKind(accel="tcg", network="passt")),
    Qemu("qemu-tcg", MachineKind(accel="tcg")),
    Qemu("qemu-user", MachineKind(network="slirp")),
    Qemu("qemu-user-tcg", MachineKind(accel="tcg", network="slirp")),
    Qemu("qemu-virtiofs", MachineKind(shared=True)),
    Qemu("qemu-virtiofs-tcg", MachineKind(accel="tcg", shared=True)),
    Qemu("qemu-writeback", MachineKind(cache="writeback")),
    Qemu("qemu-writeback-tcg", MachineKind(accel="tcg", cache="writeback")),
)
