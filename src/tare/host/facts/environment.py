"""Environment of a program beside its limits: huge pages, schedulers, /tmp, mounts and sockets. Pure parsers.

These change how programs run, and platforms differ in them, by design or by default.
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
#: File with the name of a loaded BPF scheduler (sched_ext, Linux 6.12).
EXT_SCHEDULER = "/sys/kernel/sched_ext/root/ops"
SOCKETS = {
    "rmem_max": "/proc/sys/net/core/rmem_max",
    "wmem_max": "/proc/sys/net/core/wmem_max",
    "tcp_rmem": "/proc/sys/net/ipv4/tcp_rmem",
    "tcp_wmem": "/proc/sys/net/ipv4/tcp_wmem",
    "somaxconn": "/proc/sys/net/core/somaxconn",
}
#: Prints files, each below a line with its name. Uses cat, because the shell itself reads byte by byte, and a file
#: below /proc/sys has nothing after its first byte.
_SHOW = 'for file; do echo; echo "== $file"; cat "$file"; done 2>/dev/null; :'
FILES = (MOUNTS, HUGE_PAGES, EXT_SCHEDULER, *SOCKETS.values())
#: Since this release the kernel's own scheduler is EEVDF; before it was CFS.
_EEVDF_SINCE = (6, 6)
#: Effect of a program's fsync on its root.
FSYNC, IGNORED = "fsync on /", "ignored"
_RESTRICTIONS = ("ro", "nosuid", "nodev", "noexec")
#: Options of an overlay that ignores a program's fsync.
_VOLATILE = {"volatile", "fsync=volatile"}


def show(places: Iterable[str]) -> list[str]:
    """Return the command that shows files, for `posture.parse_shown`."""
    return ["sh", "-c", _SHOW, "sh", *places]


def scheduler(release: str, ext: str) -> str:
    """Return the CPU scheduler, by the kernel's release and the name of a loaded sched_ext scheduler ("": none)."""
    if ext.strip():
        return f"sched_ext ({ext.strip()[:60]})"
    number = re.match(r"(\d{1,3})\.(\d{1,3})", release)
    if number is None:
        return UNKNOWN
    return "EEVDF" if (int(number[1]), int(number[2])) >= _EEVDF_SINCE else "CFS"


def host_ext_scheduler() -> str:
    """Return the name of this host's sched_ext scheduler; "": none is loaded."""
    return settings.read(Path(EXT_SCHEDULER)) or ""


def io_scheduler_files(device: str) -> tuple[str, str]:
    """Return the scheduler files of a disk, and of a partition's disk; ``device``: major:minor."""
    return f"/sys/dev/block/{device}/queue/scheduler", f"/sys/dev/block/{device}/../queue/scheduler"


def io_scheduler(folder: Path) -> str:
    """Return the scheduler of the disk below a folder of this host's."""
    device = folder.stat().st_dev
    places = io_scheduler_files(f"{os.major(device)}:{os.minor(device)}")
    return next(filter(None, (settings.read(Path(place)) for place in places)), UNKNOWN)


def sockets(files: Mapping[str, str]) -> dict[str, str]:
    """Return the limits of sockets' buffers and queues, in bytes and connections, from `SOCKETS`' files."""
    return {name: " ".join(files.get(path, "").split())[:60] or UNKNOWN for name, path in SOCKETS.items()}


def of_mounts(text: str) -> dict[str, str]:
    """Return the mount at /tmp, the restrictions of root and /data, and if root's overlay ignores fsync."""
    table = mounts.parse(text.encode())
    root, data, scratch = (_at(table, place) for place in ("/", "/data", "/tmp"))  # noqa: S108 (nothing is made there)
    return {
        "filesystem of /tmp": scratch.kind if scratch is not None else UNKNOWN,
        "restrictions of /": _restrictions(root),
        "restrictions of /data": _restrictions(data),
        FSYNC: UNKNOWN if root is None else IGNORED if _VOLATILE & {*root.super_options} else "kept",
    }


def data_device(text: str) -> str | None:
    """Return the device of /data, as major:minor, or None."""
    data = _at(mounts.parse(text.encode()), "/data")
    return data.device if data is not None and re.fullmatch(r"\d{1,4}:\d{1,7}", data.device) else None


def _at(table: list[mounts.Mount], place: str) -> mounts.Mount | None:
    """Return the mount of a path: the longest mount point counts, and of two there, the later hides the first."""
    above = [entry for entry in table if place == entry.point or place.startswith(entry.point.rstrip("/") + "/")]
    return max(reversed(above), key=lambda entry: len(entry.point), default=None)


def _restrictions(mount: mounts.Mount | None) -> str:
    if mount is None:
        return UNKNOWN
    return ", ".join(name for name in _RESTRICTIONS if name in {*mount.options, *mount.super_options}) or "none"
