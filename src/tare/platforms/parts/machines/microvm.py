"""The configuration of a Firecracker machine, as its file and as requests to its API. Pure data.

The names are those of Firecracker's API description (firecracker.yaml); the file has the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tare.errors import PlatformError
from tare.platforms.parts.machines import direct_boot

#: Firecracker's own limit (its API's `vcpu_count`).
MAX_CPUS = 32
#: The guest's number on its virtio socket; that of the host is always 2.
GUEST_CID, HOST_CID = 3, 2
#: The host's port that the agent connects to.
PORT = 5000
#: Firecracker's own default command line (boot_source.rs), but for two words: modules are loaded, as Debian's kernel
#: has its drivers there; and the serial port stays for the kernel's last words.
KERNEL_WORDS = (
    *("reboot=k", "panic=1", "pci=off", "i8042.noaux", "i8042.nomux", "i8042.dumbkbd", "swiotlb=noforce"),
    *("console=ttyS0", "quiet", "loglevel=1"),
)


@dataclass(frozen=True, slots=True)
class MicroVm:
    """A machine. Its paths are those that Firecracker opens, which in a jail are not the host's."""

    cpus: int
    memory_bytes: int
    kernel: str
    initramfs: str | None  # None: the kernel boots from the root by itself (`direct`)
    root: str
    data: str
    socket: str  # Firecracker adds _PORT for connections that the guest makes
    tap: str
    mac: str
    address: str  # with prefix length
    gateway: str
    agent: Sequence[str]  # the agent's arguments


def listening(socket: str) -> str:
    """Return where the host is to listen for the agent."""
    return f"{socket}_{PORT}"


def settings(machine: MicroVm) -> dict[str, Any]:
    """Return the contents of the configuration file."""
    agent = [*machine.agent, "--host", f"vsock:{HOST_CID}:{PORT}"]
    if machine.initramfs is None:
        words = [*KERNEL_WORDS, *direct_boot.words(machine.address, machine.gateway, agent, port=False)]
    else:
        words = [*KERNEL_WORDS, "tare.channel=vsock", f"tare.ip={machine.address}", f"tare.gw={machine.gateway}"]
        words += ["--", *agent]
    return {
        "machine-config": _size(machine.cpus, machine.memory_bytes),
        "boot-source": _boot(machine.kernel, machine.initramfs, " ".join(words)),
        "drives": [drive("root", machine.root), drive("data", machine.data)],
        "network-interfaces": [{"iface_id": "eth0", "guest_mac": machine.mac, "host_dev_name": machine.tap}],
        "vsock": {"guest_cid": GUEST_CID, "uds_path": machine.socket},
    }


def probe(kernel: str, initramfs: str) -> dict[str, Any]:
    """Return the configuration of a guest that prints a line and ends: whether guests run here."""
    words = " ".join([*KERNEL_WORDS, "tare.probe"])
    return {
        "machine-config": _size(1, 256 << 20),
        "boot-source": _boot(kernel, initramfs, words),
        "drives": [],
    }


def requests(config: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the configuration as PUT requests (path, body), in order; the last one starts the machine."""
    puts: list[tuple[str, dict[str, Any]]] = []
    for name, value in config.items():
        if isinstance(value, list):
            puts += [(f"/{name}/{device.get('drive_id') or device['iface_id']}", device) for device in value]
        else:
            puts.append((f"/{name}", value))
    return [*puts, ("/actions", {"action_type": "InstanceStart"})]


def _size(cpus: int, memory_bytes: int) -> dict[str, Any]:
    if cpus > MAX_CPUS:
        message = f"Firecracker's machines have at most {MAX_CPUS} CPUs, and instances are to have {cpus}"
        raise PlatformError(message, fix=f"give --cpus with {MAX_CPUS} of them")
    return {"vcpu_count": cpus, "mem_size_mib": memory_bytes >> 20}


def _boot(kernel: str, initramfs: str | None, words: str) -> dict[str, Any]:
    packed = {} if initramfs is None else {"initrd_path": initramfs}
    return {"kernel_image_path": kernel, **packed, "boot_args": words}


def drive(name: str, path: str) -> dict[str, Any]:
    """Return a disk that the guest may write to."""
    # Its default "Unsafe" drops what the guest wants written, and no other platform does that. The initramfs mounts
    # the root, so Firecracker need not know which it is.
    return {
        "drive_id": name,
        "path_on_host": path,
        "is_root_device": False,
        "is_read_only": False,
        "cache_type": "Writeback",
    }
