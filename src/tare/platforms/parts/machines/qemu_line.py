"""QEMU's command line, as pure data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.platforms.parts.machines import direct_boot
from tare.platforms.parts.machines.disks import DiskIo
from tare.platforms.parts.machines.vm import KERNEL_WORDS, PROGRAM, accelerator, clock_words


@dataclass(frozen=True, slots=True)
class Plug:
    """The guest's network card, and what it is plugged into."""

    netdev: str  # `tap`, `user` or `stream`
    mac: str
    address: str  # with prefix length
    gateway: str


@dataclass(frozen=True, slots=True)
class QemuMachine:
    """All that the command line depends on."""

    kind: str  # q35 or microvm
    accel: str  # kvm or tcg
    cpus: int
    memory_bytes: int
    kernel: Path
    initramfs: Path | None  # None: the kernel boots from the root by itself (`direct`)
    root: Path  # qcow2, over the image
    data: Path | None  # None: /data is a folder of the host's
    disks: DiskIo
    control: Path  # socket of the agent's port
    plug: Plug
    agent: Sequence[str]  # the agent's arguments
    further: Sequence[Path] = ()  # disks after the data volume; like the root, never written
    words: Sequence[str] = ()  # further words of the kernel's command line, for the boot script
    shared: Path | None = None  # socket of the daemon that shares that folder (virtiofs)
    monitor: Path | None = None  # socket of QEMU's own monitor (QMP)


#: The guest's console goes to QEMU's stdout, a pipe, where QEMU's own messages go too.
SERIAL = ("-chardev", "file,id=console,path=/proc/self/fd/1,append=on", "-serial", "chardev:console")


def tap(name: str, *, vhost: bool = False) -> str:
    """Return a network card on a TAP. ``vhost``: its packets are moved by the host's kernel, and not by QEMU."""
    return f"tap,id=net,ifname={name},script=no,downscript=no{',vhost=on' if vhost else ''}"


def user(port: int) -> str:
    """Return a network card on QEMU's user-mode stack, with one forwarded port of QEMU's network."""
    return f"user,id=net,hostfwd=tcp::{port}-:{port},hostfwd=udp::{port}-:{port}"


def stream(descriptor: int) -> str:
    """Return a network card whose packets go by a socket to a program beside the machine.

    ``descriptor``: QEMU's end.
    """
    return f"stream,id=net,addr.type=fd,addr.str={descriptor}"


def command(machine: QemuMachine) -> list[str]:
    """Return the command that starts a machine."""
    bus = "device" if machine.kind == "microvm" else "pci"
    rom = "" if machine.kind == "microvm" else ",romfile="
    return [
        PROGRAM,
        *accelerator(machine.accel),
        *("-M", machine.kind, "-smp", str(machine.cpus), "-m", f"{machine.memory_bytes >> 20}M"),
        *("-nodefaults", "-display", "none", "-no-reboot"),
        *SERIAL,
        *("-kernel", str(machine.kernel)),
        *(("-initrd", str(machine.initramfs)) if machine.initramfs is not None else ()),
        *(("-object", "iothread,id=disks") if machine.disks.io_thread else ()),
        *_disk("root", machine.root, "qcow2", machine.disks, bus),
        *(_disk("data", machine.data, "raw", machine.disks, bus) if machine.data is not None else ()),
        *(_share(machine.shared, machine.memory_bytes, bus) if machine.shared is not None else ()),
        *_further(machine.further, bus),
        *("-netdev", machine.plug.netdev, "-device", f"virtio-net-{bus},netdev=net,mac={machine.plug.mac}{rom}"),
        *("-chardev", f"socket,id=agent,path={machine.control}"),
        *("-device", f"virtio-serial-{bus}", "-device", "virtserialport,chardev=agent,name=tare.0"),
        *(("-qmp", f"unix:{machine.monitor},server=on,wait=off") if machine.monitor is not None else ()),
        *("-append", _words(machine)),
    ]


def _disk(name: str, file: Path, form: str, disks: DiskIo, bus: str) -> list[str]:
    thread = ",iothread=disks" if disks.io_thread else ""
    drive = f"if=none,id={name},file={file},format={form},{disks.options()}"
    return ["-drive", drive, "-device", f"virtio-blk-{bus},drive={name}{thread}"]


def _share(shared: Path, memory_bytes: int, bus: str) -> list[str]:
    """Return the options of a shared folder: its daemon and the guest share the guest's memory."""
    return [
        *("-object", f"memory-backend-memfd,id=memory,size={memory_bytes >> 20}M,share=on"),
        *("-machine", "memory-backend=memory"),
        *("-chardev", f"socket,id=data,path={shared}", "-device", f"vhost-user-fs-{bus},chardev=data,tag=data"),
    ]


def _further(disks: Sequence[Path], bus: str) -> list[str]:
    argv = []
    for number, disk in enumerate(disks):
        argv += ["-drive", f"if=none,id=further{number},file={disk},format=raw,snapshot=on"]
        argv += ["-device", f"virtio-blk-{bus},drive=further{number}"]
    return argv


def _words(machine: QemuMachine) -> str:
    own = [*KERNEL_WORDS, *clock_words(machine.accel)]
    if machine.initramfs is None:
        return " ".join(
            [*own, *direct_boot.words(machine.plug.address, machine.plug.gateway, machine.agent, port=True)]
        )
    words = [
        *own,
        f"tare.ip={machine.plug.address}",
        f"tare.gw={machine.plug.gateway}",
        *machine.words,
        *(["tare.data=virtiofs"] if machine.shared is not None else []),
    ]
    return " ".join([*words, "--", *machine.agent])
