"""A machine as an instance of qemu has it, to look at what it becomes; and machines that cost less to emulate."""

from dataclasses import replace
from pathlib import Path

from tare.platforms.parts.machines.disks import DiskIo
from tare.platforms.parts.machines.qemu_line import Plug, QemuMachine, tap

MACHINE = QemuMachine(
    kind="q35",
    accel="tcg",
    cpus=2,
    memory_bytes=768 << 20,
    kernel=Path("/k"),
    initramfs=Path("/i"),
    root=Path("/root.qcow2"),
    data=Path("/data.ext4"),
    disks=DiskIo("none", "io_uring"),
    control=Path("/control"),
    plug=Plug(tap("tareab1x2"), "02:7a:0a:4d:00:0a", "10.77.0.10/24", "10.77.0.1"),
    agent=("serve", "--beacon", "10.0.0.1:914"),
)


def with_one_processor(launcher):
    """A launcher of machines with one processor, where it is all the same: another takes half as much again."""
    return replace(launcher, resources=replace(launcher.resources, cpus=launcher.resources.cpus[-1:]))
