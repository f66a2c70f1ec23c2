"""Domain XML of libvirt (https://libvirt.org/formatdomain.html), as pure data."""

from __future__ import annotations

import xml.etree.ElementTree as Xml
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tare.platforms.parts.common.root_rights import CAPABILITIES
from tare.platforms.parts.machines.disks import DiskIo
from tare.platforms.parts.machines.vm import TRANSLATED_MIB

#: Inside a container libvirt numbers the descriptors that it is handed from 3: the stream, and the console's log.
STREAM, CONSOLE = 3, 4
#: The agent in a container's place of an init: on the descriptors handed over, which its children do not inherit.
AGENT_ON_STREAM = f'exec "$0" "$@" <&{STREAM} >&{STREAM} 2>&{CONSOLE} {STREAM}>&- {CONSOLE}>&-'


@dataclass(frozen=True, slots=True)
class Link:
    """A domain's link: made by libvirt on the bridge, or an existing one."""

    name: str  # on the host
    mac: str
    bridge: str | None


@dataclass(frozen=True, slots=True)
class DomainMachine:
    """A virtual machine with a kernel of ours."""

    kind: str  # kvm, qemu (emulation), xen (PV)
    name: str
    cpus: Sequence[int]
    memory_bytes: int
    kernel: Path
    initramfs: Path
    command_line: str
    root: Path
    root_format: str  # qcow2 or raw; phy: root and data are block devices
    data: Path
    console: Path
    link: Link
    control: Path | None  # socket on which the host listens for the agent; None: the agent comes over the network
    emulator: Path | None = None
    disks: DiskIo | None = None  # None: what is no QEMU's
    security: Sequence[str] = ()  # the daemon's security models


@dataclass(frozen=True, slots=True)
class Container:
    """A container of libvirt's own (lxc:///): the agent is its first process, on descriptors that are handed over."""

    name: str
    cpus: Sequence[int]
    memory_bytes: int
    command: Sequence[str]  # the container's first process
    mounts: Mapping[str, Path]  # host's folders by where they are inside
    link: Link | None
    address: str = ""
    prefix: int = 0
    gateway: str = ""
    emulator: Path | None = None
    read_only: Sequence[Path] = ()  # the kernel's files that are read-only inside
    masked: Mapping[Path, Path | None] = field(default_factory=dict)  # what lies over them; None: an empty folder


def container_xml(container: Container) -> str:
    """Return the domain of a container."""
    domain = _domain("lxc", container.name, container.memory_bytes, container.cpus)
    system = Xml.SubElement(domain, "os")
    _element(system, "type", "exe", arch="x86_64")
    _element(system, "init", container.command[0])
    for word in container.command[1:]:
        _element(system, "initarg", word)
    capabilities = Xml.SubElement(Xml.SubElement(domain, "features"), "capabilities", policy="deny")
    for name in CAPABILITIES:
        Xml.SubElement(capabilities, name.removeprefix("CAP_").lower(), state="on")
    _endings(domain)
    devices = Xml.SubElement(domain, "devices")
    if container.emulator is not None:
        _element(devices, "emulator", str(container.emulator))
    for inside, folder in container.mounts.items():
        _bind(devices, folder, inside)
    for path in container.read_only:
        Xml.SubElement(_bind(devices, path, str(path)), "readonly")
    for path, cover in container.masked.items():
        _bind(devices, cover, str(path)) if cover else _empty(devices, path)
    if container.link is not None:
        link = _interface(devices, container.link)
        Xml.SubElement(link, "guest", dev="eth0")
        Xml.SubElement(link, "ip", address=container.address, family="ipv4", prefix=str(container.prefix))
        Xml.SubElement(link, "route", family="ipv4", address="0.0.0.0", prefix="0", gateway=container.gateway)  # noqa: S104
    Xml.SubElement(devices, "console", type="pty")
    return _text(domain)


def _bind(devices: Xml.Element, source: Path, inside: str) -> Xml.Element:
    mount = Xml.SubElement(devices, "filesystem", type="mount", accessmode="passthrough")
    Xml.SubElement(mount, "source", dir=str(source))
    Xml.SubElement(mount, "target", dir=inside)
    return mount


def _empty(devices: Xml.Element, folder: Path) -> None:
    mount = Xml.SubElement(devices, "filesystem", type="ram", accessmode="passthrough")
    Xml.SubElement(mount, "source", usage="4", units="KiB")
    Xml.SubElement(mount, "target", dir=str(folder))


def machine_xml(machine: DomainMachine) -> str:
    """Return the domain of a virtual machine."""
    xen = machine.kind == "xen"
    domain = _domain(machine.kind, machine.name, machine.memory_bytes, machine.cpus)
    if machine.disks is not None and machine.disks.io_thread:
        _element(domain, "iothreads", "1")
    system = Xml.SubElement(domain, "os")
    _element(system, "type", "linux" if xen else "hvm", **({"machine": "xenpv"} if xen else {"machine": "q35"}))
    _element(system, "kernel", str(machine.kernel))
    _element(system, "initrd", str(machine.initramfs))
    _element(system, "cmdline", machine.command_line)
    if not xen:
        _processor(domain, machine.kind)
    _endings(domain)
    devices = Xml.SubElement(domain, "devices")
    if machine.emulator is not None:
        _element(devices, "emulator", str(machine.emulator))
    bus, prefix = ("xen", "xvd") if xen else ("virtio", "vd")
    _disk(devices, machine.root, machine.root_format, f"{prefix}a", bus, machine.disks)
    data_format = "phy" if machine.root_format == "phy" else "raw"
    _disk(devices, machine.data, data_format, f"{prefix}b", bus, machine.disks)
    link = _interface(devices, machine.link)
    if xen:
        _element(devices, "console", type="pty").append(Xml.Element("target", type="xen", port="0"))
    else:
        Xml.SubElement(link, "model", type="virtio")
        Xml.SubElement(link, "rom", enabled="no")
        _ports(devices, machine)
        Xml.SubElement(devices, "controller", type="usb", model="none")
        Xml.SubElement(devices, "memballoon", model="none")
    for model in machine.security:
        _as_root(domain, model)
    return _text(domain)


def _domain(kind: str, name: str, memory_bytes: int, cpus: Sequence[int]) -> Xml.Element:
    domain = Xml.Element("domain", type=kind)
    _element(domain, "name", name)
    _element(domain, "memory", str(memory_bytes >> 10), unit="KiB")
    _element(domain, "vcpu", str(len(cpus)), placement="static", cpuset=",".join(map(str, cpus)))
    return domain


def _processor(domain: Xml.Element, kind: str) -> None:
    features = Xml.SubElement(domain, "features")
    Xml.SubElement(features, "acpi")
    if kind == "kvm":
        Xml.SubElement(domain, "cpu", mode="host-passthrough")
        return
    # QEMU's own default is 1 GiB, which would have it killed at the instance's memory limit.
    _element(Xml.SubElement(features, "tcg"), "tb-cache", str(TRANSLATED_MIB), unit="MiB")
    Xml.SubElement(domain, "cpu", mode="maximum")


def _endings(domain: Xml.Element) -> None:
    for event in ("poweroff", "reboot", "crash"):
        _element(domain, f"on_{event}", "destroy")


def _disk(devices: Xml.Element, place: Path, form: str, target: str, bus: str, how: DiskIo | None) -> None:
    block = form == "phy"
    disk = Xml.SubElement(devices, "disk", type="block" if block else "file", device="disk")
    driver = {"name": "phy"} if block else {"name": "qemu", "type": form}
    if how is not None:
        driver |= {"cache": how.cache, "io": how.aio}
        driver |= {"iothread": "1"} if how.io_thread else {}
    Xml.SubElement(disk, "driver", driver)
    Xml.SubElement(disk, "source", {"dev" if block else "file": str(place)})
    Xml.SubElement(disk, "target", dev=target, bus=bus)


def _interface(devices: Xml.Element, link: Link) -> Xml.Element:
    if link.bridge is None:
        interface = Xml.SubElement(devices, "interface", type="ethernet")
        Xml.SubElement(interface, "target", dev=link.name, managed="no")
    else:
        interface = Xml.SubElement(devices, "interface", type="bridge")
        Xml.SubElement(interface, "source", bridge=link.bridge)
        Xml.SubElement(interface, "target", dev=link.name)
    Xml.SubElement(interface, "mac", address=link.mac)
    return interface


def _ports(devices: Xml.Element, machine: DomainMachine) -> None:
    serial = Xml.SubElement(devices, "serial", type="file")
    Xml.SubElement(serial, "source", path=str(machine.console), append="on")
    if machine.control is not None:
        channel = Xml.SubElement(devices, "channel", type="unix")
        Xml.SubElement(channel, "source", mode="connect", path=str(machine.control))
        Xml.SubElement(channel, "target", type="virtio", name="tare.0")


def _as_root(domain: Xml.Element, model: str) -> None:
    """Make the user's own daemon run the domain as root, to whom the disks belong."""
    if model != "dac":
        Xml.SubElement(domain, "seclabel", type="none", model=model)
        return
    label = Xml.SubElement(domain, "seclabel", type="static", model="dac", relabel="no")
    _element(label, "label", "+0:+0")


def _element(parent: Xml.Element, name: str, text: str | None = None, **attributes: str) -> Xml.Element:
    element = Xml.SubElement(parent, name, attributes)
    element.text = text
    return element


def _text(domain: Xml.Element) -> str:
    Xml.indent(domain)
    return Xml.tostring(domain, encoding="unicode") + "\n"
