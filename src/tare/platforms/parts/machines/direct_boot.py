"""The boot of a machine without an initramfs: its kernel mounts the root from the disk, and sets the network up.

The machine's first program is the image's shell, with one line that mounts the data volume and becomes the agent.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from tare.platforms.base import AGENT

#: What guests have on their disks, in the order in which the monitor is told of them.
ROOT, DATA = "/dev/vda", "/dev/vdb"
#: The kernel takes what is between double quotes for one word, and knows no double quote within.
_BEGUN = "mount -t proc proc /proc; read -r began _ </proc/uptime"
_MOUNTED = f"mount -t sysfs sysfs /sys; mount -t ext4 {DATA} /data"
#: The agent's stream is the virtio port of that name.
_PORT = (
    "for port in /sys/class/virtio-ports/*; do read -r name <$port/name;"
    " case $name in tare.0) exec <>/dev/${port##*/} >&0;; esac; done"
)


def words(address: str, gateway: str, agent: Sequence[str], *, port: bool) -> list[str]:
    """Return the further words of the kernel's command line; the last of them are its first program's.

    ``address``: with prefix length. ``agent``: the agent's arguments. ``port``: the agent speaks by a virtio port, else
    it connects by itself. Raises `ValueError` for an argument with a double quote.
    """
    network = ipaddress.ip_interface(address)
    begun = f"{AGENT} {' '.join(agent)} --init --userspace-at $began 2>/dev/console"
    script = "; ".join([_BEGUN, _MOUNTED, *([_PORT] if port else []), f"exec {begun}"])
    if '"' in script:
        raise ValueError(f"a kernel's command line has no double quote within a word: {script}")
    return [
        *(f"root={ROOT}", "rootfstype=ext4", "rw"),
        f"ip={network.ip}::{gateway}:{network.netmask}::eth0:off",
        *("init=/bin/sh", "--", "-c", f'"{script}"'),
    ]
