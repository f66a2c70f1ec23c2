"""Firecracker: a small virtual machine by KVM, configured by a file or by its API, with its jailer or without.

The agent is the guest's PID 1 and connects to the host by a virtio socket, which Firecracker forwards to a Unix socket
that listens since before the guest exists. Firecracker itself is in no package registry: a user brings it on PATH.
"""

from __future__ import annotations

import functools
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tare.errors import HostError, ImageError, PlatformError
from tare.host import processes
from tare.host.kernel import mounts
from tare.host.network import bridge
from tare.host.resources.journal import CleanupStack
from tare.image import guest
from tare.image.image_build import Image
from tare.platforms.base import Availability, Instance, Instant, LaunchSpec, Platform, Prepared
from tare.platforms.parts.common import left_open
from tare.platforms.parts.common.callback import StartedMachine, come_up
from tare.platforms.parts.machines import vm
from tare.platforms.parts.machines.microvm import MicroVm, listening, probe, requests, settings
from tare.timeouts import stretched, until

PROGRAM, JAILER = "firecracker", "jailer"
KIND = "firecracker"
#: What the monitor itself may take beside the guest's memory.
MONITOR_BYTES = 64 << 20
#: The user that a jailed Firecracker becomes: Linux's "nobody", who owns nothing.
JAILED_USER = 65534
#: For its API's socket to be there, and for an answer.
API_LIMIT_S = 10.0
ANSWER_CAP = 1 << 16
QUIET = ("--level", "Warning")
FIX = "put Firecracker's release binaries (firecracker, jailer) on PATH: no package registry has them"
LAB = "try it in the lab: tare lab run --file FIRECRACKER -- tare run -p firecracker"


@dataclass(frozen=True, slots=True)
class JailPaths:
    """The paths of an instance's files, for the host and for Firecracker: in a jail they begin at its root."""

    folder: Path  # on the host
    jailed: bool

    def seen(self, path: Path) -> str:
        """Return the path by which Firecracker opens a file."""
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
        boot_files = self._boots()
        machine = MicroVm(
            cpus=len(spec.resources.cpus),
            memory_bytes=spec.resources.memory_bytes,
            kernel=place.bring(boot_files.kernel),
            initramfs=place.bring(boot_files.initramfs) if isinstance(boot_files, guest.Guest) else None,
            root=place.seen(_root(spec, place)),
            data=place.seen(_owned(vm.data_volume(place.folder), self._jailed)),
            socket=place.seen(place.folder / "v"),
            tap=tap,
            mac=endpoint.mac,
            address=f"{endpoint.address}/{spec.network.prefix}",
            gateway=spec.network.host,
            agent=spec.agent_argv(*self.agent_options)[1:],
        )
        with socket.socket(socket.AF_UNIX) as listener:
            path = Path(listening(str(place.folder / "v")))
            listener.bind(str(path))
            _owned(path, self._jailed)
            listener.listen(1)
            self._before(spec, place, settings(machine), listener)
            begun = StartedMachine(*self._start(spec, place, settings(machine)), what="Firecracker")

            def tell() -> None:
                if self._api:
                    configure(place.folder / "api", self._puts(place, settings(machine)), begun.process)

            instance = come_up(spec, listener, begun, endpoint.address, tell=tell)
        return replace(instance, guest_bytes=machine.memory_bytes)

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
        if self._api:
            options = ["--api-sock", place.seen(place.folder / "api")]
        else:
            file = place.folder / "config.json"
            file.write_text(json.dumps(config))
            options = ["--no-api", "--config-file", place.seen(file)]
        argv = [PROGRAM, "--id", spec.id, *QUIET, *options]
        if self._jailed:
            argv = jail(processes.find(PROGRAM) or PROGRAM, spec, [*QUIET, *options])
        return vm.begin(spec, argv)


def jail(program: str, spec: LaunchSpec, options: Sequence[str]) -> list[str]:
    """Return the command that starts Firecracker in a jail: its own root, user and mount namespace.

    It makes no groups.
    """
    user = str(JAILED_USER)
    argv = [JAILER, "--id", spec.id, "--exec-file", program, "--uid", user, "--gid", user]
    return [*argv, "--chroot-base-dir", str(spec.space.data), "--", *options]


class Api(http.client.HTTPConnection):
    """HTTP over Firecracker's Unix socket."""

    def __init__(self, place: Path) -> None:
        super().__init__("localhost", timeout=stretched(API_LIMIT_S))
        self._place = place

    def connect(self) -> None:
        """Connect to the socket."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(self.timeout)
        try:
            connection.connect(str(self._place))
        except OSError:
            connection.close()
            raise
        self.sock = connection

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Send one PUT request. Raises `PlatformError` with Firecracker's message where it refuses."""
        self.tell("PUT", path, body)

    def tell(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        """Send one request with this HTTP method. Raises `PlatformError` where it is not answered, or refused."""
        try:
            self.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            answer = self.getresponse()
            body_text = answer.read(ANSWER_CAP).decode(errors="replace").strip()
        except (OSError, http.client.HTTPException) as error:
            raise PlatformError(f"Firecracker's API does not answer to {method} {path}: {error}") from error
        if answer.status >= 300:
            raise PlatformError(f"Firecracker refuses {method} {path}: {fault(body_text)}")


def fault(body: str) -> str:
    """Return the ``fault_message`` in the body of an answer, else the body."""
    try:
        return str(json.loads(body)["fault_message"])
    except (ValueError, KeyError, TypeError):
        return body or "no message"


def configure(place: Path, puts: Sequence[tuple[str, dict[str, Any]]], process: subprocess.Popen[bytes]) -> None:
    """Send PUT requests (path, body) to the API of a Firecracker that may still be starting. Raises `PlatformError`."""
    deadline = until(API_LIMIT_S)
    api = Api(place)
    while True:
        try:
            api.connect()
            break
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise PlatformError("Firecracker's API socket does not come up") from error
            time.sleep(0.001)
    try:
        for path, body in puts:
            api.put(path, body)
    finally:
        api.close()


def _root(spec: LaunchSpec, place: JailPaths) -> Path:
    copy = vm.copied(vm.root_disk(spec.image), place.folder / "root.ext4")
    return _owned(copy, place.jailed)


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
