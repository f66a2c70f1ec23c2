"""What surrounds a program beside its limits: huge pages, schedulers, /tmp, mounts and sockets. Pure readings of text.

Programs run otherwise by these, and platforms differ in them by their nature or by their defaults.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tare.host.kernel import mounts, settings

UNKNOWN = "unknown"
MOUNTS = "/proc/self/mountinfo"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
#: The name of the scheduler that a BPF program makes, where one is loaded (sched_ext, Linux 6.12).
EXT_SCHEDULER = "/sys/kernel/sched_ext/root/ops"
SOCKETS = {
    "rmem_max": "/proc/sys/net/core/rmem_max",
    "wmem_max": "/proc/sys/net/core/wmem_max",
    "tcp_rmem": "/proc/sys/net/ipv4/tcp_rmem",
    "tcp_wmem": "/proc/sys/net/ipv4/tcp_wmem",
    "somaxconn": "/proc/sys/net/core/somaxconn",
}
#: Prints files, each below a line with its name. Not by the shell itself, which reads byte by byte: a file below
#: /proc/sys has nothing after its first byte.
_SHOW = 'for file; do echo; echo "== $file"; cat "$file"; done 2>/dev/null; :'
FILES = (MOUNTS, HUGE_PAGES, EXT_SCHEDULER, *SOCKETS.values())
#: Since this release the kernel's own scheduler is EEVDF; before it was CFS.
_EEVDF_SINCE = (6, 6)
#: What becomes of what a program syncs on its root.
FSYNC, IGNORED = "fsync on /", "ignored"
_RESTRICTIONS = ("ro", "nosuid", "nodev", "noexec")
#: An overlay's options by which it writes nothing back that a program syncs.
_VOLATILE = {"volatile", "fsync=volatile"}


def show(places: Iterable[str]) -> list[str]:
    """The command that shows files, for `posture.parse_shown`."""
    return ["sh", "-c", _SHOW, "sh", *places]


def scheduler(release: str, ext: str) -> str:
    """Who shares out the CPUs, by a kernel's release and the name of a loaded scheduler of sched_ext; "": none is."""
    if ext.strip():
        return f"sched_ext ({ext.strip()[:60]})"
    number = re.match(r"(\d{1,3})\.(\d{1,3})", release)
    if number is None:
        return UNKNOWN
    return "EEVDF" if (int(number[1]), int(number[2])) >= _EEVDF_SINCE else "CFS"


def host_ext_scheduler() -> str:
    """The name of this host's scheduler of sched_ext; "": none is loaded."""
    return settings.read(Path(EXT_SCHEDULER)) or ""


def io_scheduler_files(device: str) -> tuple[str, str]:
    """Where a disk's scheduler stands, and where that of a partition's disk does; ``device``: major:minor."""
    return f"/sys/dev/block/{device}/queue/scheduler", f"/sys/dev/block/{device}/../queue/scheduler"


def io_scheduler(folder: Path) -> str:
    """The scheduler of the disk below a folder of this host's."""
    device = folder.stat().st_dev
    places = io_scheduler_files(f"{os.major(device)}:{os.minor(device)}")
    return next(filter(None, (settings.read(Path(place)) for place in places)), UNKNOWN)


def sockets(files: Mapping[str, str]) -> dict[str, str]:
    """Limits of sockets' buffers and queues, in bytes and connections, from `SOCKETS`' files."""
    return {name: " ".join(files.get(path, "").split())[:60] or UNKNOWN for name, path in SOCKETS.items()}


def of_mounts(text: str) -> dict[str, str]:
    """What is mounted at /tmp, how root and /data are restricted, and whether root's overlay drops what is synced."""
    table = mounts.parse(text.encode())
    root, data, scratch = (_at(table, place) for place in ("/", "/data", "/tmp"))  # noqa: S108 (nothing is made there)
    return {
        "filesystem of /tmp": scratch.kind if scratch is not None else UNKNOWN,
        "restrictions of /": _restrictions(root),
        "restrictions of /data": _restrictions(data),
        FSYNC: UNKNOWN if root is None else IGNORED if _VOLATILE & {*root.super_options} else "kept",
    }


def data_device(text: str) -> str | None:
    """The device of /data, as major:minor; None where there is none."""
    data = _at(mounts.parse(text.encode()), "/data")
    return data.device if data is not None and re.fullmatch(r"\d{1,4}:\d{1,7}", data.device) else None


def _at(table: list[mounts.Mount], place: str) -> mounts.Mount | None:
    """The mount that a path is in: of two at the longest of its parents, the later hides the first."""
    above = [entry for entry in table if place == entry.point or place.startswith(entry.point.rstrip("/") + "/")]
    return max(reversed(above), key=lambda entry: len(entry.point), default=None)


def _restrictions(mount: mounts.Mount | None) -> str:
    if mount is None:
        return UNKNOWN
    return ", ".join(name for name in _RESTRICTIONS if name in {*mount.options, *mount.super_options}) or "none"
