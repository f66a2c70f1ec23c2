"""blackbox: a machine without shell or agent, which is measured by the requests that it answers.

For unikernels: ``blackbox:FILE.toml`` names any kernel or disk image (`boxfile`), and the monitor that boots it
(`monitors`). The platform ``blackbox`` and its variants boot a tiny guest of our own, which stands for one.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tare import lazily
from tare.errors import HostError, ImageError, PlatformError, SessionError
from tare.host import processes, userns
from tare.host.network import bridge
from tare.host.resources.journal import CleanupStack
from tare.image import blackbox_guest, forms, guest
from tare.image.image_build import Image
from tare.platforms.base import Address, Availability, Instance, LaunchSpec, Platform, PlatformFamily, Prepared
from tare.platforms.monitors import MONITORS, GuestSetup
from tare.platforms.parts.machines import microvm, vm
from tare.platforms.parts.machines.qemu_line import tap
from tare.platforms.watchers.guest_service import CONSOLE, HTTP, PING, TCP_ECHO, UDP_ECHO, FirstAnswer, GuestService
from tare.platforms.watchers.marks import EchoPing, FirstByte

if TYPE_CHECKING:
    from tare.platforms.parts.machines import boxfile
    from tare.platforms.parts.machines.boxfile import Box, GuestAnswers
else:
    boxfile = lazily.LazyModule("tare.platforms.parts.machines.boxfile")

NO_PING = "QEMU's user-mode network answers no echo requests from outside"
#: On QEMU's own network a guest gets this by DHCP: address, prefix, gateway.
USER_NETWORK = ("10.0.2.15", "24", "10.0.2.2")
#: Where its namespace's ports for HTTP are, above those of instances: a guest may serve echo and HTTP both by TCP, and
#: a monitor without rights opens no port below 1024.
HTTP_ABOVE = 2_000
OWN_CMDLINE = "{words} box_ip={{ip}} box_prefix={{prefix}} box_gateway={{gateway}}"
#: QEMU runs in a network namespace then: its guest would reach all that the host's programs do (see `qemu`).
USERS_WAY = "bridge, veth, QEMU's user-mode network (slirp)"
WAYS = {
    "qemu": "bridge, TAP",
    "firecracker": "bridge, TAP, virtio-net",
    "xen": "bridge, vif (netback, netfront)",
    "hvt": "bridge, TAP, Solo5's hypercalls",
    "spt": "bridge, TAP, system calls on it",
}
#: What the file calls the ports of these services, below [answers].
ANSWERS = {UDP_ECHO: "udp", TCP_ECHO: "tcp", HTTP: "http"}
#: By monitor: what the guest's kernel is told.
KERNEL_WORDS = {
    "qemu": vm.KERNEL_WORDS,
    "firecracker": microvm.KERNEL_WORDS,
    "xen": ("console=hvc0", "quiet", "panic=-1", "reboot=t"),
}


class SilentStream:
    """The stream of an instance without an agent: no bytes, and readable when the process has ended."""

    def __init__(self, process: subprocess.Popen[bytes], off: Callable[[], None] = lambda: None) -> None:
        self._process = process
        self._off = off
        self._fd = os.pidfd_open(process.pid)

    def fileno(self) -> int:
        """Return the process's descriptor."""
        return self._fd

    def send(self, data: bytes, deadline: float) -> None:  # noqa: ARG002 (a stream's method)
        """Raise `SessionError`: there is no agent."""
        raise SessionError("a black box has no agent")

    def receive(self, limit: int) -> bytes:  # noqa: ARG002 (a stream's method)
        """Return the end of the stream: b""."""
        return b""

    def close(self) -> None:
        """End the machine. May be called twice."""
        if self._fd >= 0:
            self._off()
            processes.end(self._process)
            os.close(self._fd)
            self._fd = -1


class BlackBox(Platform):
    """The platform of one black box."""

    has_agent = False
    same_bits = False
    own_kernel = True
    shares_data = False
    by_default = False
    disk_cache = "none: it has no data volume"
    not_honoured = (
        "it runs other bits: what is in the box, and not the image",
        "memory and processors are those that its file names, within the limits",
        "there is no data volume, and no command runs inside",
    )

    def __init__(self, name: str, title: str, network_path: str, box: Callable[[], Box]) -> None:
        self.name = name
        self.title = title
        self._box = functools.cache(box)
        self._lock = threading.Lock()  # several instances may start at once
        self._fixed: SilentStream | None = None  # the instance that has the one address of the guest's own
        self.network_path = network_path

    @classmethod
    def of_file(cls, argument: str) -> BlackBox:
        """Return the box that a file describes. Raises `UsageError`."""
        file = Path(argument)
        box = boxfile.load(file)
        title = f"black box: what {file.name} describes, by {box.vmm}"
        way = USERS_WAY if box.link == "user" else WAYS[box.vmm]
        card = f", {box.card}" if box.vmm == "qemu" else ""
        path = "none: it has no network card" if box.link == "none" else f"client, {way}{card}"
        platform = cls(f"blackbox:{argument}", title, path, lambda: box)
        platform.alone = f"its address is its own, {box.ip}" if box.ip is not None else ""
        return platform

    def detect(self) -> Availability:
        """Check that its monitor runs here, and build the guest where it is tare's own."""
        try:
            box = self._box()
        except (ImageError, HostError) as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        answer = MONITORS[box.vmm].detect(box)
        answers = ", ".join(_shown(box.answers))
        return replace(answer, details={**answer.details, "answers": answers}) if answer.available else answer

    def prepare(self, image: Image) -> Prepared:  # noqa: ARG002 (it runs other bits)
        """Kernel, initrd and disk as they are, with their size on the disk."""
        box = self._box()
        files = [*box.files.values()]
        return Prepared("what is in the box", sum(map(forms.disk_bytes, files)), tuple(files))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Boot the box, and send requests to its services until they answer.

        Raises `PlatformError` where one with its fixed address runs.
        """
        box = self._box()
        _check_fits(box, spec)
        with self._lock if box.ip is not None else contextlib.nullcontext():
            if self._fixed is not None and self._fixed.fileno() >= 0:
                message = f"{self.name} has one address, its own {box.ip}, and an instance with it runs"
                raise PlatformError(message, fix="put {ip} into cmdline, or set dhcp = true, to run several at once")
            setup, address = _plug(box, spec, cleanup)
            daemons = (spec.network.serve_dhcp(cleanup, setup.mac),) if box.dhcp else ()
            monitor = MONITORS[box.vmm]
            within = bridge.entered(spec.id) if box.link == "user" else []
            with contextlib.ExitStack() as opened:
                boot = monitor.ready(box, setup, cleanup, opened)
                started, process = vm.begin(spec, boot.argv, [*within, *boot.within], boot.pass_fds)
            stream = SilentStream(process, lambda: monitor.off(setup))
            if box.ip is not None:
                self._fixed = stream
        ping = EchoPing(address.ping) if spec.measured and address.ping else None
        first_byte = FirstByte(stream.fileno())
        answer = FirstAnswer(_services(box, address, spec))
        return Instance(
            spec, stream, started, address, first_byte, ping, daemons, accounted=monitor.accounted, answer=answer
        )


def _services(box: Box, address: Address, spec: LaunchSpec) -> list[GuestService]:
    """All that has to answer before the guest is in service."""
    services = [
        GuestService(kind, address.host or "", port, box.answers.path, getattr(box.answers, ANSWERS[kind]))
        for kind, port in address.services.items()
    ]
    if box.answers.ping:
        services.append(GuestService(PING, address.ping or "", 0))
    if box.answers.console is not None:
        services.append(GuestService(CONSOLE, str(spec.space.log), 0, box.answers.console))
    if box.console is not None:
        services.append(GuestService(CONSOLE, str(spec.space.log), 0, box.console, counts=False))
    return services


def _check_fits(box: Box, spec: LaunchSpec) -> None:
    """Raise `PlatformError` when the box takes more than an instance gets."""
    monitor_bytes = MONITORS[box.vmm].own_bytes
    room = (spec.resources.memory_bytes - monitor_bytes) >> 20
    if box.memory > room:
        needed = box.memory + (monitor_bytes >> 20)
        message = f"memory: the box takes {box.memory} MiB, and {room} MiB are left beside the monitor"
        raise PlatformError(message, fix=f"give --memory {needed}, or less in the box's file")
    if box.cpus > len(spec.resources.cpus):
        message = f"cpus: the box takes {box.cpus} processors, and instances get {len(spec.resources.cpus)}"
        raise PlatformError(message, fix="give more with --cpus, or less in the box's file")


def _plug(box: Box, spec: LaunchSpec, cleanup: CleanupStack) -> tuple[GuestSetup, Address]:
    """Connect it to the network, and fill its addresses into the guest's command line."""
    ports = {kind: getattr(box.answers, name) for kind, name in ANSWERS.items()}
    inside = {kind: port for kind, port in ports.items() if port is not None}
    lacks = {
        kind: f"no `{name}` in [answers] of the box's file" for kind, name in ANSWERS.items() if kind not in inside
    }
    link = ""
    if box.link == "none":
        address = Address(None, spec.port, spec.port, None, "it has no network card", lacks=lacks)
        netdev, mac, places = "", "", ("", "", "")
    elif box.link == "tap":
        # Xen's tools make their end of the link themselves; the other monitors open it as users without rights.
        if box.vmm == "xen":
            endpoint, link = spec.network.new_endpoint(cleanup, spec.id, address=box.ip)
        else:
            endpoint, link = spec.network.new_tap(cleanup, spec.id, userns.FIRST, box.ip)
        address = Address(
            endpoint.address,
            spec.port,
            spec.port,
            endpoint.address,
            services=inside,
            lacks=lacks,
            http_path=box.answers.path,
        )
        places = (endpoint.address, str(spec.network.prefix), spec.network.host)
        netdev, mac = tap(link), endpoint.mac
    else:
        endpoint, mac = spec.network.new_namespace(cleanup, spec.id), "02:7a:0a:00:02:0f"
        outside = {kind: spec.port + (HTTP_ABOVE if kind == HTTP else 0) for kind in inside}
        address = Address(
            endpoint.address,
            spec.port,
            spec.port,
            None,
            NO_PING,
            services=outside,
            lacks=lacks,
            http_path=box.answers.path,
        )
        forwards = [f"hostfwd={_protocol(kind)}::{outside[kind]}-:{port}" for kind, port in inside.items()]
        netdev, places = ",".join(["user,id=net", *forwards]), USER_NETWORK
    ip, prefix, gateway = places
    netmask = str(ipaddress.IPv4Network(f"0.0.0.0/{prefix}").netmask) if prefix else ""
    cmdline = box.command_line(ip=ip, prefix=prefix, netmask=netmask, gateway=gateway, mac=mac)
    name, cpus = f"tare-{spec.id}", spec.resources.cpus
    return GuestSetup(name, spec.space.data, link, netdev, mac, cmdline, cpus), address


def _protocol(kind: str) -> str:
    return "udp" if kind == UDP_ECHO else "tcp"


def _shown(answers: GuestAnswers) -> list[str]:
    ports = [f"{name} {port}" for name in ANSWERS.values() if (port := getattr(answers, name)) is not None]
    return [*ports, *(["ping"] if answers.ping else []), *(["its console"] if answers.console is not None else [])]


def own_box(vmm: str) -> Box:
    """Return the guest of tare's own, for a monitor. Raises `ImageError` and `HostError` where it cannot be built."""
    boot_files = blackbox_guest.ensure(vmm)
    answers = boxfile.GuestAnswers(
        udp=blackbox_guest.ECHO_PORT, tcp=blackbox_guest.ECHO_PORT, http=blackbox_guest.HTTP_PORT
    )
    words = [*KERNEL_WORDS[vmm], *(vm.clock_words(vm.accelerated(guest.ensure())[0]) if vmm == "qemu" else ())]
    cmdline = OWN_CMDLINE.format(words=" ".join(words))
    fields = {"vmm": vmm, "cmdline": cmdline, "memory": 128, "answers": answers}
    return boxfile.Box.model_validate({**fields, "kernel": boot_files.kernel, "initrd": boot_files.initramfs})


def _own(name: str, vmm: str, title: str, card: str = "") -> BlackBox:
    description = f"black box: a tiny guest of tare's without shell or agent, {title}"
    return BlackBox(name, description, f"client, {WAYS[vmm]}{card}", lambda: own_box(vmm))


OWN = _own("blackbox", "qemu", "in QEMU", ", virtio-net-pci")
PLATFORMS = (
    OWN,
    _own("blackbox-firecracker", "firecracker", "in Firecracker"),
    _own("blackbox-xen", "xen", "on Xen"),
)
FAMILIES = {
    "blackbox": PlatformFamily(
        BlackBox.of_file,
        "FILE.toml",
        "any kernel or disk image without an agent, described by a file",
        "name a file: -p blackbox:FILE.toml",
    )
}
