"""Capabilities, masked and read-only paths of root in sandboxes that share the host's kernel, with the reasons.

Most of these sandboxes have the host's own uid 0 inside. What keeps it in are these lists, the device group of the
runtime (no node but null, zero, full, random, urandom, tty and the terminals opens), and nothing else: so a capability
that is not named is not given. The capabilities are Docker's default set, and the paths are Docker's (moby's
``oci/defaults.go`` and ``DefaultMaskedPaths``), so that all of these sandboxes and a container of Docker's may do the
same. Left out, for each alone is the host's root: CAP_SYS_ADMIN (mounts /proc/sys writable again, or the host's disk),
CAP_DAC_READ_SEARCH (opens any file of the disk that /data is on, by its handle), CAP_SYS_MODULE, CAP_SYS_RAWIO,
CAP_SYS_PTRACE, CAP_BPF; and those by which one sandbox disturbs all: CAP_SYS_BOOT, CAP_SYS_TIME, CAP_NET_ADMIN.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

#: Why root inside has each. None reaches beyond the sandbox's own files, processes and network.
REASONS: Mapping[str, str] = {
    "CAP_AUDIT_WRITE": "login programs write records to the audit log, and fail where they cannot",
    "CAP_CHOWN": "package managers and services give files away, in the sandbox's own trees",
    "CAP_DAC_OVERRIDE": "root reads and writes all files that are in the sandbox",
    "CAP_FOWNER": "root changes modes and times of files that are others'",
    "CAP_FSETID": "set-group-id bits survive a change of a file, as package managers expect",
    "CAP_KILL": "root signals processes of other users, in its pid namespace",
    "CAP_MKNOD": "makes nodes; which of them open is the device group's to say",
    "CAP_NET_BIND_SERVICE": "services listen on ports below 1024 of the sandbox's own network",
    "CAP_NET_RAW": "ping, on the sandbox's own network",
    "CAP_SETFCAP": "package managers give programs capabilities, of this set at most",
    "CAP_SETGID": "services leave root's group",
    "CAP_SETPCAP": "programs give up capabilities for good",
    "CAP_SETUID": "services leave root",
    "CAP_SYS_CHROOT": "services and package managers change their root, inside the sandbox's own",
}
CAPABILITIES = tuple(REASONS)
#: For platforms without a device control group, which would decide which nodes can be opened: none are made.
WITHOUT_NODES = tuple(name for name in CAPABILITIES if name != "CAP_MKNOD")

#: What nobody inside reads: the host's memory, keys, timers, devices and firmware. Folders are empty, files /dev/null.
MASKED = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
)
#: What nobody inside writes: by core_pattern, sysrq and their like the host's root runs programs, or the host stops.
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def present(paths: tuple[str, ...]) -> list[Path]:
    """Return the paths that exist on this host, for tools that can only mount over existing ones."""
    return [path for path in map(Path, paths) if path.exists()]


def lxc_settings() -> list[str]:
    """Return this module's lists as LXC's settings (lxc.container.conf(5)), also for LXD's ``raw.lxc``.

    They are `CAPABILITIES`, `MASKED` and `READ_ONLY`.

    LXC keeps CAP_SYS_ADMIN in its containers: where no AppArmor holds it back, root inside mounts /proc/sys writable.
    """
    capabilities = " ".join(name.removeprefix("CAP_").lower() for name in CAPABILITIES)
    # Either what is dropped or what is kept may be named, and the files included name what is dropped.
    lines = ["lxc.cap.drop =", f"lxc.cap.keep = {capabilities}"]
    # /proc/sys and sysrq-trigger are read-only by LXC's own mixed /proc.
    closed = {path: f"{path} {_below(path)} none bind,ro" for path in present(READ_ONLY) if path.name != "sys"}
    for path in present(MASKED):
        closed[path] = f"none {_below(path)} tmpfs ro" if path.is_dir() else f"/dev/null {_below(path)} none bind"
    return [*lines, *(f"lxc.mount.entry = {entry},optional 0 0" for entry in closed.values())]


def _below(path: Path) -> str:
    return str(path).removeprefix("/")
