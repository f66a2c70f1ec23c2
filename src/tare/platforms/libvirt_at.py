"""libvirt by URI: daemons that are there already, and hypervisors that libvirt drives besides QEMU and LXC.

``libvirt:URI`` uses the daemon that answers there, as it is configured. Its domains are made in groups of its own (or
systemd's), and moved into the instance's: a machine while it is still paused, a container right after its start.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from tare.errors import PlatformError, UsageError
from tare.host import cgroup, distribution, instance_console, processes
from tare.host.daemons import activation
from tare.host.filesystems import roots
from tare.host.kernel import process_table
from tare.host.network.fence import BRIDGE
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image import guest
from tare.image.image_build import Image
from tare.platforms import xen
from tare.platforms.base import Availability, Instance, LaunchSpec, Platform, Prepared
from tare.platforms.libvirt import INSTALL, Libvirt, LibvirtLxc, LibvirtQemu
from tare.platforms.parts.common.adopt import move
from tare.platforms.parts.common.callback import StartedMachine, come_up
from tare.platforms.parts.libvirt import domain, libvirtd, virsh
from tare.platforms.parts.libvirt.virsh import Creation
from tare.platforms.parts.machines import vm

DAEMONS = ("libvirtd", "virtqemud", "virtlxcd", "virtxend", "virtlogd")
#: Of the host's own daemon, whole or in parts.
SOCKETS = ("/run/libvirt/libvirt-sock", "/run/libvirt/virtqemud-sock", "/run/libvirt/virtvboxd-sock")
BY_HAND = "start a Linux guest there yourself, and weigh it: -p ssh:HOST"
#: Hypervisors on which libvirt cannot boot a kernel file of this host's, by the scheme of their URIs.
UNBOOTABLE = {
    "vbox": "VirtualBox",
    "vmwareplayer": "VMware Player",
    "vmwarews": "VMware Workstation",
    "vmwarefusion": "VMware Fusion",
    "esx": "VMware ESXi",
    "gsx": "VMware GSX",
    "vpx": "VMware vCenter",
    "hyperv": "Hyper-V",
    "bhyve": "bhyve",
    "openvz": "OpenVZ",
    "vz": "Virtuozzo",
    "ch": "Cloud Hypervisor",
    "test": "its own mock, which runs nothing",
}


@dataclass(frozen=True, slots=True)
class LibvirtUri:
    """The parts of a connection URI of libvirt (https://libvirt.org/uri.html)."""

    uri: str
    driver: str
    host: str

    @classmethod
    def parse(cls, uri: str) -> LibvirtUri:
        """Read a URI of libvirt's, such as ``qemu:///system``. Raises `UsageError` for one of no known driver."""
        parts = urlsplit(uri)
        driver = parts.scheme.partition("+")[0]
        if driver not in {"qemu", "lxc", "xen", *UNBOOTABLE}:
            raise UsageError(f"{uri!r} is not a URI of libvirt's", fix="write one such as libvirt:qemu:///system")
        return cls(uri, driver, parts.netloc)


class DaemonAtUri(libvirtd.LibvirtDaemon):
    """The daemon that a URI names, as its owner configured it."""

    moves = True

    def __init__(self, uri: str) -> None:
        self.connection = virsh.Connection(uri)
        self.security = security_models(self.connection.ask("capabilities").text)

    @property
    def groups(self) -> list[cgroup.Group]:
        """The control groups of all libvirt daemons on this host that have one of their own."""
        return cgroup.usage_of_all(DAEMONS)

    @contextlib.contextmanager
    def container_root(self, spec: LaunchSpec, cleanup: CleanupStack) -> Iterator[Path]:
        """Provide an overlay on the host, which must be visible to the daemon."""
        yield roots.overlay_root(cleanup, spec.space, spec.image.root)

    def settle(self, spec: LaunchSpec, name: str) -> None:
        """Move all processes of the domain, and let it go on if it was made paused."""
        move(spec.group, lambda: set(family(name)), "tool")
        self.connection.ask("resume", name)  # fails for a container, which is not paused


def family(name: str) -> list[int]:
    """Return the processes that libvirt started for a domain, and all that these started."""
    command_lines = process_table.command_lines()
    return process_table.descendants(pid for pid, argv in command_lines.items() if runs_domain(argv, name))


def runs_domain(argv: Sequence[str], name: str) -> bool:
    """Return True if a command line is that of the domain's QEMU or libvirt_lxc."""
    pairs = list(itertools.pairwise(argv))
    is_lxc = argv[0].endswith("libvirt_lxc") and ("--name", name) in pairs
    return is_lxc or any(flag == "-name" and word.split(",")[0] == f"guest={name}" for flag, word in pairs)


def security_models(capabilities: str) -> list[str]:
    """Return the security models of a daemon, from what ``virsh capabilities`` says."""
    return [model for model in re.findall(r"<model>(\w+)</model>\s*<doi>", capabilities) if model != "none"]


class AtUri(Libvirt):
    """A platform whose daemon a URI names; a mixin for the classes that define the domains."""

    uri: str

    def _lacking(self) -> Availability | None:
        if processes.find("virsh") is None:
            return Availability(False, reason="virsh is not installed", fix=distribution.install("libvirt-clients"))
        try:
            virsh.Connection(self.uri).version()
        except PlatformError as error:
            fix = f"start that libvirt's daemon, with its {self.driver} driver; see `virsh -c {self.uri} version`"
            return Availability(False, reason=f"libvirt at {self.uri}: {error.what}", fix=fix)
        return None

    def _open(self) -> libvirtd.LibvirtDaemon:
        return DaemonAtUri(self.uri)


class QemuAt(AtUri, LibvirtQemu):
    """A machine of QEMU's, by a daemon that is there."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"libvirt:{uri}", f"libvirt at {uri}: a machine of QEMU's")
        self.uri = uri


class LxcAt(AtUri, LibvirtLxc):
    """A container of libvirt's own, by a daemon that is there."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"libvirt:{uri}", f"libvirt at {uri}: a container of its own")
        self.uri = uri


class XenAt(AtUri):
    """A paravirtual guest of Xen's; the same guest as the platform ``xen-pv``."""

    driver = "xen"
    packages = ("libvirt-daemon-driver-xen",)
    network_path = xen.Xen.network_path
    shares_data = False
    disk_cache = xen.Xen.disk_cache
    no_direct_io = xen.Xen.no_direct_io
    keeps_quota = False
    own_kernel = True
    open_by_design = xen.Xen.open_by_design
    not_honoured = xen.Xen.not_honoured

    def __init__(self, name: str, uri: str) -> None:
        super().__init__(name, f"libvirt at {uri}: a paravirtual guest of Xen's")
        self.uri = uri

    def _lacking(self) -> Availability | None:
        if not xen.is_dom0():
            return Availability(False, reason="this host does not run under Xen as dom0", fix=xen.FIX)
        return super()._lacking()

    def prepare(self, image: Image) -> Prepared:
        """Prepare the image as the platform ``xen-pv`` does."""
        return xen.Xen("xen-pv", "").prepare(image)

    def _program(self) -> Path | None:
        return None

    def _try(self, daemon: libvirtd.LibvirtDaemon) -> Availability:
        return Availability(True, version=daemon.connection.version())

    def _launch(self, spec: LaunchSpec, cleanup: CleanupStack, daemon: libvirtd.LibvirtDaemon) -> Instance:
        endpoint, link = spec.network.new_endpoint(cleanup, spec.id)
        boot_files = guest.ensure(xen.KIND)
        name = f"tare-{spec.id}"
        with spec.network.listener() as listener:
            words = ["console=hvc0", "quiet", "panic=-1", "tare.channel=network", "tare.disk=xvd"]
            words += [f"tare.ip={endpoint.address}/{spec.network.prefix}", f"tare.gw={spec.network.host}", "--"]
            words += [*spec.agent_argv()[1:], "--host", f"tcp:{spec.network.host}:{listener.getsockname()[1]}"]
            machine = domain.DomainMachine(
                kind="xen",
                name=name,
                cpus=spec.resources.cpus,
                memory_bytes=spec.resources.memory_bytes,
                kernel=boot_files.kernel,
                initramfs=boot_files.initramfs,
                command_line=" ".join(words),
                root=Path(xen.loop_device(cleanup, xen.root(spec))),
                root_format="phy",
                data=Path(xen.loop_device(cleanup, vm.data_volume(spec.space.data))),
                console=spec.space.log,
                link=domain.Link(link, endpoint.mac, BRIDGE),
                control=None,
            )
            instance_console.watch(spec.space.log)  # libvirt's tools open it by its path
            cleanup.own(removers.libvirt_domain(daemon.connection.uri, name, daemon.socket))
            creation = Creation(spec, daemon.connection, domain.machine_xml(machine))
            started = creation.go()
            complaint = creation.wait()
            if complaint is not None:
                raise self._refusal(daemon, complaint)
            watcher = virsh.watcher(spec, daemon.connection, name)
            begun = StartedMachine(
                started, watcher, "Xen", off=lambda: _destroy(daemon, name), gone=lambda: virsh.wait_stopped(watcher)
            )
            instance = come_up(spec, listener, begun, endpoint.address, peer=endpoint.address)
        return replace(instance, daemons=daemon.groups, accounted=False)


def _destroy(daemon: libvirtd.LibvirtDaemon, name: str) -> None:
    """End a domain; what stays is left to its remover."""
    daemon.connection.ask("destroy", name)


class Unbootable(Platform):
    """A hypervisor that libvirt drives, and that boots no kernel of the host's, as tare's guests need it."""

    network_path = "none"
    by_default = False

    def __init__(self, name: str, parsed: LibvirtUri) -> None:
        self.name = name
        self._uri = parsed
        self._what = UNBOOTABLE.get(parsed.driver, f"{parsed.driver} on another host")
        self.title = f"libvirt at {parsed.uri}: {self._what}"

    def detect(self) -> Availability:
        """Ask for its version: the reason says whether the hypervisor is missing, or cannot boot tare's guests."""
        if processes.find("virsh") is None:
            return Availability(False, reason="virsh is not installed", fix=distribution.install(*INSTALL, lean=True))
        if self._uri.driver in {"esx", "gsx", "vpx"} and not self._uri.host:
            return Availability(False, reason="no ESXi host is named", fix=f"-p libvirt:esx://HOST/, or {BY_HAND}")
        if self._uri.driver not in UNBOOTABLE:
            why = f"{self._uri.host} is another host: its domains cannot be on this one's bridge"
            return Availability(False, reason=why, fix=f"-p ssh:{self._uri.host}")
        if any(map(activation.only_init_listens, SOCKETS)):
            why = f"{self._what}: the host's libvirt daemon does not run, and a request would start it"
            return Availability(False, reason=why, fix=f"systemctl start libvirtd, or {BY_HAND}")
        try:
            version = virsh.Connection(self._uri.uri).version()
        except PlatformError as error:
            return Availability(False, reason=f"{self._what} by libvirt: {error.what}", fix=BY_HAND)
        why = f"{version} answers, but boots no kernel of the host's, which tare's guests are"
        return Availability(False, reason=why, fix=BY_HAND)

    def prepare(self, image: Image) -> Prepared:  # noqa: ARG002
        """Raise `PlatformError`: it cannot run tare's guests."""
        raise PlatformError(f"{self._what} cannot run tare's guests", fix=BY_HAND)

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:  # noqa: ARG002
        """Raise `PlatformError`: it cannot run tare's guests."""
        raise PlatformError(f"{self._what} cannot run tare's guests", fix=BY_HAND)


def at(uri: str) -> Platform:
    """Return the platform of a URI. Raises `UsageError`."""
    parsed = LibvirtUri.parse(uri)
    if parsed.host or parsed.driver in UNBOOTABLE:
        return Unbootable(f"libvirt:{uri}", parsed)
    if parsed.driver == "xen":
        return XenAt(f"libvirt:{uri}", uri)
    return QemuAt(uri) if parsed.driver == "qemu" else LxcAt(uri)


at.argument = "URI"  # type: ignore[attr-defined]
at.asks = "name a daemon that is there: -p libvirt:qemu:///system"  # type: ignore[attr-defined]
at.summary = "the libvirt daemon at a URI, as it is configured"  # type: ignore[attr-defined]

PLATFORMS = (
    XenAt("libvirt-xen", "xen:///system"),
    Unbootable("libvirt-vbox", LibvirtUri.parse("vbox:///session")),
    Unbootable("libvirt-vmware", LibvirtUri.parse("vmwarews:///session")),
    Unbootable("libvirt-esx", LibvirtUri.parse("esx:///")),
)
FAMILIES = {"libvirt": at}
