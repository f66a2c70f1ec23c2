"""QEMU's command line, as pure data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.platforms.vm import PROGRAM, accelerator


@dataclass(frozen=True, slots=True)
class Machine:
    """All that decides the command line."""

    kind: str  # q35 or microvm
    accel: str  # kvm or tcg
    cpus: int
    memory_bytes: int
    kernel: Path
    initramfs: Path
    root: Path
    data: Path
    control: Path  # socket of the agent's port
    console: Path
    tap: str
    mac: str
    address: str  # with prefix length
    gateway: str
    agent: Sequence[str]  # the agent's arguments


def command(machine: Machine) -> list[str]:
    """The command that starts a machine."""
    bus = "device" if machine.kind == "microvm" else "pci"
    rom = "" if machine.kind == "microvm" else ",romfile="
    append = f"console=ttyS0 panic=-1 reboot=t tare.ip={machine.address} tare.gw={machine.gateway} -- "
    return [
        PROGRAM,
        *accelerator(machine.accel),
        *("-M", machine.kind, "-smp", str(machine.cpus), "-m", f"{machine.memory_bytes >> 20}M"),
        *("-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{machine.console}"),
        *("-kernel", str(machine.kernel), "-initrd", str(machine.initramfs)),
        *("-drive", f"if=none,id=root,file={machine.root},format=raw,snapshot=on"),
        *("-drive", f"if=none,id=data,file={machine.data},format=raw"),
        *("-device", f"virtio-blk-{bus},drive=root", "-device", f"virtio-blk-{bus},drive=data"),
        *("-netdev", f"tap,id=net,ifname={machine.tap},script=no,downscript=no"),
        *("-device", f"virtio-net-{bus},netdev=net,mac={machine.mac}{rom}"),
        *("-chardev", f"socket,id=agent,path={machine.control}"),
        *("-device", f"virtio-serial-{bus}", "-device", "virtserialport,chardev=agent,name=tare.0"),
        *("-append", append + " ".join(machine.agent)),
    ]
