"""Firecracker: a small virtual machine by KVM, configured by a file or by its API, with its jailer or without.

The agent is the guest's PID 1 and connects to the host by a virtio socket, which Firecracker forwards to a Unix socket
that listens since before the guest exists. Firecracker itself is in no package registry: a user brings it on PATH.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tare.errors import HostError, ImageError, UnsupportedError
from tare.host import processes
from tare.host.kernel import mounts
from tare.host.network import bridge
from tare.host.network.bridge import Endpoint
from tare.host.resources.journal import CleanupStack
from tare.image import guest
from tare.image.image_build import Image
from tare.platforms.base import STARTED, Availability, Instance, Instant, LaunchSpec, Life, Platform, Prepared
from tare.platforms.parts.common import left_open, signal_commands
from tare.platforms.parts.common.callback import StartedMachine, come_up
from tare.platforms.parts.machines import vm
from tare.platforms.parts.machines.channel import GuestChannel
from tare.platforms.parts.machines.firecracker_api import configure
from tare.platforms.parts.machines.microvm import MicroVm, listening, probe, requests, settings
from tare.platforms.parts.machines.microvm_life import AGENT_OPTIONS, API, VSOCK, MicroVmLife
from tare.session.byte_streams import SocketStream

PROGRAM, JAILER = "firecracker", "jailer"
KIND = "firecracker"
#: Its root disk, in its folder.
ROOT = "root.ext4"
#: What the monitor itself may take beside the guest's memory.
MONITOR_BYTES = 64 << 20
#: The user that a jailed Firecracker becomes: Linux's "nobody", who owns nothing.
JAILED_USER = 65534
QUIET = ("--level", "Warning")
FIX = "put Firecracker's release binaries (firecracker, jailer) on PATH: no package registry has them"
LAB = "try it in the lab: tare lab run --file FIRECRACKER -- tare run -p firecracker"


@dataclass(frozen=True, slots=True)
class JailPaths:
    """The paths of an instance's files, for the host and for Firecracker: in a jail they begin at its root."""

    folder: Path  # on the host
    jailed: bool
    inside: bool = False  # whether it is Firecracker's working folder, and the names of its files begin there

    def seen(self, path: Path) -> str:
        """Return the path by which Firecracker opens a file."""
        if self.inside:
            return str(path.relative_to(self.folder))
        return f"/{path.relative_to(self.folder)}" if self.jailed else str(path)

    def bring(self, file: Path) -> str:
        """Make a read-only file reachable for Firecracker; the path by which it opens it."""
        if not self.jailed:
            return str(file)
        copy = self.folder / file.name
        try:
            copy.hardlink_to(file.resolve())  # of a link, the name alone would get into the jail
        except OSError:  # on another filesystem
            shutil.copyfile(file, copy)
        return self.seen(copy)


class Firecracker(Platform):
    """A microVM with two virtio disks, a TAP and a virtio socket; what it writes goes to raw files on the host."""

    shares_data = False
    disk_cache = vm.DISK_CACHE
    no_direct_io = f"{vm.NO_DIRECT_IO}: Firecracker has no other way"
    monitor_bytes = MONITOR_BYTES
    own_kernel = True
    by_default = False
    network_path = "client, bridge, TAP, virtio-net"
    years = MappingProxyType(
        {2022: "1.0 1.1 1.2", 2023: "1.3 1.4 1.5 1.6", 2024: "1.7 1.8 1.9 1.10", 2025: "1.11 1.12 1.13"}
    )
    agent_options: tuple[str, ...] = ()
    open_by_design = left_open.BY_BRIDGE
    not_honoured = (vm.OWN_VOLUME, vm.monitor_beyond_limit(MONITOR_BYTES))

    def __init__(self, name: str, title: str, *, api: bool = False, jailed: bool = False, direct: bool = False) -> None:
        """``direct``: it boots from its disk by itself, by a kernel that has its drivers built in."""
        self.name = name
        self.title = title
        self._direct = direct
        self._api = api
        self._jailed = jailed
        self._lives: dict[Path, MicroVmLife] = {}  # by where their snapshots are to be

    def detect(self) -> Availability:
        """Look for Firecracker, and boot a trivial guest by it."""
        for needed in (PROGRAM, JAILER) if self._jailed else (PROGRAM,):
            if processes.find(needed) is None:
                return Availability(False, reason=f"no {needed} binary on PATH", fix=FIX)
        answer = tried(KIND, partial(complaint, processes.find(PROGRAM) or PROGRAM), LAB)
        if not answer.available:
            return answer
        try:
            answer = replace(answer, details={**answer.details, "guest kernel": self._boots().release})
        except ImageError as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        version = processes.run([PROGRAM, "--version"], time_limit_s=10).text.split("\n")[0]
        return replace(answer, version=version.split()[-1])

    def prepare(self, image: Image) -> Prepared:
        """Return the image as an ext4 filesystem; each guest gets a copy that is thrown away."""
        return vm.prepared(vm.root_disk(image), self._boots(), PROGRAM)

    def _boots(self) -> guest.Guest | guest.Direct:
        """Return what its machines boot."""
        return guest.direct(plain=True) if self._direct else guest.ensure(KIND)

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Make TAP, disks and sockets, and start the machine."""
        endpoint, tap = spec.network.new_tap(cleanup, spec.id)
        place = self._place(spec)
        machine = self._machine(spec, place, tap, endpoint, spec.agent_argv(*self.agent_options))
        with socket.socket(socket.AF_UNIX) as listener:
            _listen(listener, place)
            self._before(spec, place, settings(machine), listener)
            begun = StartedMachine(*self._start(spec, place, settings(machine)), what="Firecracker")

            def tell() -> None:
                if self._api:
                    puts = self._puts(place, settings(machine))
                    configure(place.folder / API, puts, lambda: begun.process.poll() is not None)

            instance = come_up(spec, listener, begun, endpoint.address, tell=tell)
        return replace(instance, guest_bytes=machine.memory_bytes)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:
        """Firecracker's command, its API, and the guest channel; a stop resets the guest.

        Raises `UnsupportedError` in a jail, and for a start from a snapshot.
        """
        if self._jailed:
            raise UnsupportedError("tare knows the life of machines outside of a jail alone")
        if self.from_snapshot:
            raise UnsupportedError(
                "its start is a restore, which startup measures; all else of its life is firecracker-api's"
            )
        endpoint, tap = spec.network.new_tap(cleanup, spec.id)
        place = JailPaths(spec.space.data, jailed=False, inside=True)
        config = settings(self._machine(spec, place, tap, endpoint, spec.agent_argv(*AGENT_OPTIONS)))
        command = self._command(spec, place, config)
        lived = self._lived(spec, place, command, tap, argv)
        return lived.by_api(requests(config), self._until_closed(lived)) if self._api else lived.by_file()

    def copy(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str], snapshot: Path) -> Life:
        """Return the snapshot loaded by another Firecracker, with copies of its disks in a folder of its own.

        Its TAP takes the place of that in the snapshot, and is off the bridge, as all copies have one address.
        """
        _, tap = spec.network.new_tap(cleanup, spec.id, plugged=False)
        place = JailPaths(spec.space.data, jailed=False, inside=True)
        lived = self._lived(spec, place, self._command(spec, place, {}), tap, argv)
        return lived.copy_of(self._lives[snapshot], self._until_closed(lived))

    def _lived(
        self, spec: LaunchSpec, place: JailPaths, command: Sequence[str], tap: str, argv: Sequence[str]
    ) -> MicroVmLife:
        with contextlib.ExitStack() as on_failure:
            listener = on_failure.enter_context(socket.socket(socket.AF_UNIX))
            _listen(listener, place)
            channel = GuestChannel(listener, argv, limit_s=spec.start_limit_s, accept=accepted)
            made = spec.made()
            on_failure.pop_all()
        disks = (place.folder / ROOT, place.folder / vm.VOLUME)
        kill = signal_commands.sent("KILL", STARTED)
        return MicroVmLife(place.folder, command, kill, channel, disks, made, tap)

    def _until_closed(self, lived: MicroVmLife) -> Callable[[], None]:
        """Know a machine by the place of its snapshot until the returned function is called, which closes it."""
        self._lives[lived.saved] = lived

        def close() -> None:
            self._lives.pop(lived.saved, None)
            lived.channel.close()

        return close

    def _machine(
        self, spec: LaunchSpec, place: JailPaths, tap: str, endpoint: Endpoint, agent: Sequence[str]
    ) -> MicroVm:
        """Make its disks; the machine that has them."""
        boot_files = self._boots()
        return MicroVm(
            cpus=len(spec.resources.cpus),
            memory_bytes=spec.resources.memory_bytes,
            kernel=place.bring(boot_files.kernel),
            initramfs=place.bring(boot_files.initramfs) if isinstance(boot_files, guest.Guest) else None,
            root=place.seen(_root(spec, place)),
            data=place.seen(_owned(vm.data_volume(place.folder), self._jailed)),
            socket=place.seen(place.folder / VSOCK),
            tap=tap,
            mac=endpoint.mac,
            address=f"{endpoint.address}/{spec.network.prefix}",
            gateway=spec.network.host,
            agent=agent[1:],
        )

    def _before(self, spec: LaunchSpec, place: JailPaths, config: dict[str, Any], listener: socket.socket) -> None:
        """Do what precedes the measured start: nothing for a machine that is booted."""

    def _puts(self, place: JailPaths, config: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:  # noqa: ARG002
        """Return what the API is told (path, body)."""
        return requests(config)

    def _place(self, spec: LaunchSpec) -> JailPaths:
        if not self._jailed:
            return JailPaths(spec.space.data, jailed=False)
        # The jailer makes devices in it. The guest makes no files: what it writes is in its disks' images.
        mounts.clear(spec.space.folder)
        # The path that the jailer uses. It is below the instance's folder, and is removed with that.
        folder = spec.space.data / Path(processes.find(PROGRAM) or PROGRAM).resolve().name / spec.id / "root"
        folder.mkdir(parents=True)
        return JailPaths(folder, jailed=True)

    def _start(
        self, spec: LaunchSpec, place: JailPaths, config: Mapping[str, Any]
    ) -> tuple[Instant, subprocess.Popen[bytes]]:
        if self._jailed:
            return vm.begin(spec, jail(processes.find(PROGRAM) or PROGRAM, spec, self._options(place, config)))
        return vm.begin(spec, self._command(spec, place, config))

    def _command(self, spec: LaunchSpec, place: JailPaths, config: Mapping[str, Any]) -> list[str]:
        """Return Firecracker's command outside of a jail."""
        return [PROGRAM, "--id", spec.id, *self._options(place, config)]

    def _options(self, place: JailPaths, config: Mapping[str, Any]) -> list[str]:
        """Return Firecracker's own options. Writes the configuration file if there is no API."""
        if self._api:
            return [*QUIET, "--api-sock", place.seen(place.folder / API)]
        file = place.folder / "config.json"
        file.write_text(json.dumps(config))
        return [*QUIET, "--no-api", "--config-file", place.seen(file)]


def jail(program: str, spec: LaunchSpec, options: Sequence[str]) -> list[str]:
    """Return the command that starts Firecracker in a jail: its own root, user and mount namespace.

    It makes no groups.
    """
    user = str(JAILED_USER)
    argv = [JAILER, "--id", spec.id, "--exec-file", program, "--uid", user, "--gid", user]
    return [*argv, "--chroot-base-dir", str(spec.space.data), "--", *options]


def _root(spec: LaunchSpec, place: JailPaths) -> Path:
    copy = vm.copied(vm.root_disk(spec.image), place.folder / ROOT)
    return _owned(copy, place.jailed)


def _listen(listener: socket.socket, place: JailPaths) -> None:
    """Listen where Firecracker connects a guest's agent."""
    path = Path(listening(str(place.folder / VSOCK)))
    listener.bind(str(path))
    _owned(path, place.jailed)
    listener.listen(1)


def accepted(listener: socket.socket, limit_s: float) -> SocketStream:
    """Return the stream of a guest's agent, once Firecracker has connected it. Raises `PlatformError`."""
    return SocketStream(vm.accept(listener, lambda: False, limit_s=limit_s, monitor="Firecracker"))


def _owned(path: Path, jailed: bool) -> Path:
    if jailed:
        os.chown(path, JAILED_USER, JAILED_USER)
    return path


def tried(kind: str, complaint_of: Callable[[guest.Guest], str], lab: str) -> Availability:
    """Return the availability of a monitor's guests here, without its version.

    ``complaint_of``: boots a guest of this kind, and says what is wrong. ``lab``: the fix where it does not come up.
    """
    lacking = bridge.no_tun()
    if lacking is not None:
        return Availability(False, reason=lacking.what, fix=lacking.fix or "")
    try:
        boot_files = guest.ensure(kind)
        why = without_kvm() or explained(complaint_of(boot_files))
    except (ImageError, HostError) as error:
        return Availability(False, reason=error.what, fix=error.fix or "")
    if why:
        return Availability(False, reason=why, fix=lab)
    return Availability(True, details={"guest kernel": boot_files.release})


def without_kvm() -> str:
    """Return why no guest can run by KVM here; "" when one may."""
    return "" if os.access(vm.KVM, os.R_OK | os.W_OK) else f"KVM: {vm.KVM} cannot be opened"


def explained(why: str) -> str:
    """Return why a trial guest does not come up. If QEMU's guest does not either, KVM is the cause.

    Which of them is at fault the monitor's own try decides: a QEMU that fails for a reason of its own refuses nothing.
    """
    if not why or processes.find(vm.PROGRAM) is None:
        return why
    accel, by_qemu = vm.accelerated(guest.ensure())
    return why if accel == "kvm" else by_qemu


@functools.cache
def complaint(program: str, made: guest.Guest) -> str:
    """Boot a guest that prints a line once it runs; "" when it does, else what is wrong."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "config.json")
        file.write_text(json.dumps(probe(str(made.kernel), str(made.initramfs))))
        argv = [program, "--no-api", *QUIET, "--config-file", str(file)]
        tried = processes.run(argv, time_limit_s=vm.KVM_LIMIT_S)
    return vm.why_not(tried)


PLATFORMS = (
    Firecracker("firecracker", "Firecracker, told by a file"),
    Firecracker("firecracker-api", "Firecracker, told by its API", api=True),
    Firecracker("firecracker-direct", "Firecracker, told by a file, without an initramfs", direct=True),
    Firecracker("firecracker-jailer", "Firecracker in its jailer's jail, told by a file", jailed=True),
)
