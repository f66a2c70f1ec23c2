"""blackbox: a machine that boots something without shell or agent, and is known by what it answers.

For unikernels: ``blackbox:FILE.toml`` names any kernel or disk image (`boxfile`). The platform ``blackbox`` boots
a tiny guest of our own, which stands for one.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostError, ImageError, PlatformError, SessionError
from tare.host import network, processes
from tare.host.journal import Belongings
from tare.image import blackbox, forms, guest
from tare.image.build import Image
from tare.platforms.answers import CONSOLE, HTTP, TCP_ECHO, UDP_ECHO, FirstAnswer, Service
from tare.platforms.base import Address, Availability, Family, Instance, Instant, LaunchSpec, Platform, Prepared
from tare.platforms.boxfile import Answers, Box, load
from tare.platforms.machine import tap
from tare.platforms.marks import FirstByte, Ping
from tare.platforms.vm import MONITOR_BYTES, PROGRAM, accelerated, accelerator

NO_PING = "QEMU's user-mode network answers no echo requests from outside"
#: On QEMU's own network a guest gets this by DHCP: address, prefix, gateway.
USER_NETWORK = ("10.0.2.15", "24", "10.0.2.2")
#: Where the host's ports for HTTP are, above those of instances: a guest may serve echo and HTTP both by TCP.
HTTP_ABOVE = 2_000
OWN_CMDLINE = "console=ttyS0 quiet panic=-1 reboot=t box_ip={ip} box_prefix={prefix} box_gateway={gateway}"


class Silent:
    """In place of an agent's stream: says nothing, and polls readable when the process has ended."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._fd = os.pidfd_open(process.pid)

    def fileno(self) -> int:
        """The process's descriptor."""
        return self._fd

    def send(self, data: bytes) -> None:  # noqa: ARG002 (a stream's method)
        """Nobody is there."""
        raise SessionError("nobody listens in a black box")

    def receive(self, limit: int) -> bytes:  # noqa: ARG002 (a stream's method)
        """There is only the end."""
        return b""

    def close(self) -> None:
        """End the machine. May be called twice."""
        if self._fd >= 0:
            processes.kill_group(self._process)
            self._process.wait()
            os.close(self._fd)
            self._fd = -1


@dataclass(frozen=True, slots=True)
class Seat:
    """What one machine gets."""

    accel: str
    console: Path
    netdev: str
    mac: str
    cmdline: str


def qemu_command(box: Box, seat: Seat) -> list[str]:
    """The command that boots a box with QEMU."""
    rom = "" if box.network.endswith("-device") else ",romfile="
    argv = [PROGRAM, *accelerator(seat.accel), "-M", box.machine, "-smp", str(box.cpus), "-m", f"{box.memory}M"]
    argv += ["-nodefaults", "-display", "none", "-no-reboot"]
    argv += ["-chardev", f"file,id=console,path={seat.console},append=on", "-serial", "chardev:console"]
    argv += ["-netdev", seat.netdev, "-device", f"{box.network},netdev=net,mac={seat.mac}{rom}"]
    if box.kernel is not None:
        argv += ["-kernel", str(box.kernel), "-append", seat.cmdline]
    if box.initrd is not None:
        argv += ["-initrd", str(box.initrd)]
    if box.disk is not None:
        argv += ["-drive", f"if=none,id=disk,file={box.disk},format={disk_format(box.disk)},snapshot=on"]
        argv += ["-device", f"{box.disk_device},drive=disk"]
    return argv


#: By the field ``vmm``: its program, and what makes the command that boots a box.
MONITORS: Mapping[str, Callable[[Box, Seat], list[str]]] = {"qemu": qemu_command}


def disk_format(disk: Path) -> str:
    """qcow2 by its mark, else raw."""
    with disk.open("rb") as file:
        return "qcow2" if file.read(4) == b"QFI\xfb" else "raw"


class BlackBox(Platform):
    """One box."""

    has_agent = False
    same_bits = False
    own_kernel = True
    shares_data = False
    by_default = False
    not_honoured = (
        "it runs other bits: what is in the box, and not the image",
        "memory and processors are those that its file names, within the limits",
        "there is no data volume, and no command runs inside",
    )

    def __init__(self, name: str, title: str, network_path: str, box: Callable[[], Box]) -> None:
        self.name = name
        self.title = title
        self._box = functools.cache(box)
        self.network_path = network_path

    @classmethod
    def of_file(cls, argument: str) -> BlackBox:
        """The box that a file describes. Raises `UsageError`."""
        file = Path(argument)
        box = load(file)
        title = f"black box: what {file.name} describes, by {box.vmm}"
        way = "host stack, QEMU's user-mode network" if box.link == "user" else "bridge, TAP"
        return cls(f"blackbox:{argument}", title, f"client, {way}, {box.network}", lambda: box)

    def detect(self) -> Availability:
        """Look for QEMU, and what the guest takes."""
        if processes.find(PROGRAM) is None:
            return Availability(False, reason="QEMU is not installed", fix="apt-get install qemu-system-x86")
        if os.geteuid() != 0:
            return Availability(False, reason="control groups and TAPs need root", fix="run tare as root (sudo)")
        try:
            box = self._box()
            lacking = network.no_tun() if box.link == "tap" else None
            if lacking is not None:
                raise lacking
            accel, why = accelerated(guest.ensure())
        except (ImageError, HostError) as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        shown = processes.run([PROGRAM, "--version"], time_limit_s=10).text.split("\n")[0]
        version = shown.removeprefix("QEMU emulator version ").split()[0]
        details = {"accelerator": f"{accel}: {why}", "answers": ", ".join(_shown(box.answers))}
        return Availability(True, version=f"{version}, {accel}", details=details)

    def prepare(self, image: Image) -> Prepared:  # noqa: ARG002 (it runs other bits)
        """What is booted is there already, or made once."""
        box = self._box()
        files = [path for path in (box.kernel, box.initrd, box.disk) if path is not None]
        return Prepared("what is in the box", sum(forms.disk_bytes(path) for path in files))

    def launch(self, spec: LaunchSpec, things: Belongings) -> Instance:
        """Boot the box, and ask it until it answers."""
        box = self._box()
        _check_fits(box, spec)
        netdev, mac, address, cmdline = _plug(box, spec, things)
        seat = Seat(accelerated(guest.ensure())[0], spec.space.log, netdev, mac, cmdline)
        full = ["env", f"TMPDIR={spec.space.folder}", *MONITORS[box.vmm](box, seat)]
        with spec.space.log.open("ab") as errors:
            nothing, procs = subprocess.DEVNULL, spec.group.leaf("tool")
            held = processes.start_held(full, stdin=nothing, stdout=nothing, stderr=errors, cgroup_procs=procs)
        stream = Silent(held.process)
        started = Instant.now()
        held.go()
        services = [
            Service(kind, address.host or "", port, box.answers.path) for kind, port in address.services.items()
        ]
        if box.console is not None:
            services.append(Service(CONSOLE, str(spec.space.log), 0, box.console))
        ping = Ping(address.ping) if spec.measured and address.ping else None
        first_byte = FirstByte(stream.fileno())
        return Instance(spec, stream, started, address, first_byte, ping, answer=FirstAnswer(services))


def _check_fits(box: Box, spec: LaunchSpec) -> None:
    """Raises `PlatformError` when the box takes more than an instance gets."""
    room = (spec.resources.memory_bytes - MONITOR_BYTES) >> 20
    if box.memory > room:
        needed = box.memory + (MONITOR_BYTES >> 20)
        what = f"memory: the box takes {box.memory} MiB, and {room} MiB are left beside the monitor"
        raise PlatformError(what, fix=f"give --memory {needed}, or less in the box's file")
    if box.cpus > len(spec.resources.cpus):
        what = f"cpus: the box takes {box.cpus} processors, and instances get {len(spec.resources.cpus)}"
        raise PlatformError(what, fix="give more with --cpus, or less in the box's file")


def _plug(box: Box, spec: LaunchSpec, things: Belongings) -> tuple[str, str, Address, str]:
    """Network device, MAC, address and the command line with all of it."""
    ports = {UDP_ECHO: box.answers.udp, TCP_ECHO: box.answers.tcp, HTTP: box.answers.http}
    inside = {kind: port for kind, port in ports.items() if port is not None}
    if box.link == "tap":
        endpoint, link = spec.network.new_tap(things, spec.id)
        address = Address(endpoint.address, spec.port, spec.port, endpoint.address, services=inside)
        places = (endpoint.address, str(spec.network.prefix), spec.network.host)
        netdev, mac = tap(link), endpoint.mac
    else:
        host, mac = spec.network.host, "02:7a:0a:00:02:0f"
        outside = {kind: spec.port + (HTTP_ABOVE if kind == HTTP else 0) for kind in inside}
        address = Address(host, spec.port, spec.port, None, NO_PING, services=outside)
        forwards = [f"hostfwd={_protocol(kind)}:{host}:{outside[kind]}-:{port}" for kind, port in inside.items()]
        netdev, places = ",".join(["user,id=net", *forwards]), USER_NETWORK
    ip, prefix, gateway = places
    return netdev, mac, address, box.command_line(ip=ip, prefix=prefix, gateway=gateway, mac=mac)


def _protocol(kind: str) -> str:
    return "udp" if kind == UDP_ECHO else "tcp"


def _shown(answers: Answers) -> list[str]:
    return [f"{name} {port}" for name in ("udp", "tcp", "http") if (port := getattr(answers, name)) is not None]


def _own() -> Box:
    made = blackbox.ensure()
    answers = Answers(udp=blackbox.ECHO_PORT, tcp=blackbox.ECHO_PORT, http=blackbox.HTTP_PORT)
    return Box(kernel=made.kernel, initrd=made.initramfs, memory=128, cmdline=OWN_CMDLINE, answers=answers)


OWN = BlackBox(
    "blackbox",
    "black box: a tiny guest of tare's without shell or agent, in QEMU",
    "client, bridge, TAP, virtio-net-pci",
    _own,
)
PLATFORMS = (OWN,)
FAMILIES = {
    "blackbox": Family(
        BlackBox.of_file,
        "FILE.toml",
        "any kernel or disk image without an agent, described by a file",
        "name a file: -p blackbox:FILE.toml",
    )
}
