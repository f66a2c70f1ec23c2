"""Rights of a process on the host besides system calls: capabilities, identity, namespaces, mounts, open devices.

Everything is read from /proc (proc(5)). The parsers are pure functions on text.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tare.footprint_model import WritableMount
from tare.host.facts import posture
from tare.host.kernel import mounts, process_table

#: Filesystems that are interfaces to the kernel: writing to them changes its settings.
KERNELS = frozenset(
    {
        "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "efivarfs", "fusectl", "proc", "pstore",
        "securityfs", "selinuxfs", "sysfs", "tracefs",
    }
)  # fmt: skip
#: Major and minor numbers of null, zero, full, random and urandom, which every program may have.
HARMLESS = frozenset((1, minor) for minor in (3, 5, 7, 8, 9))
#: The same for a mount of a single node of the host's /dev, and for the process's own terminal.
_HARMLESS_NODES = frozenset(f"/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Identity:
    """The fields of a thread's /proc/PID/status."""

    name: str
    tracer: int  # 0: not traced
    uid: int  # effective
    gid: int
    effective: int  # capabilities, as bits
    bounding: int
    no_new_privs: bool
    seccomp: int  # 0 off, 1 strict, 2 filter
    filters: int | None  # Number of stacked filters; None if the kernel does not report it (before 5.9).

    def nameless(self) -> Identity:
        """Return the identity without the thread's name, so that threads that differ only in name compare equal."""
        return replace(self, name="")


def identity_of(fields: Mapping[str, str]) -> Identity:
    """Parse an identity from the fields of /proc/PID/status."""
    return Identity(
        name=fields["Name"],
        tracer=int(fields["TracerPid"]),
        uid=int(fields["Uid"].split()[1]),
        gid=int(fields["Gid"].split()[1]),
        effective=int(fields["CapEff"], 16),
        bounding=int(fields["CapBnd"], 16),
        no_new_privs=fields.get("NoNewPrivs") == "1",
        seccomp=int(fields.get("Seccomp", 0)),
        filters=int(fields["Seccomp_filters"]) if "Seccomp_filters" in fields else None,
    )


def writable_places(theirs: Sequence[mounts.Mount], ours: Sequence[mounts.Mount]) -> list[WritableMount]:
    """Return the parts of the host's tree, or of its kernel's settings, that a process sees at writable mounts.

    A filesystem is the host's if it is mounted in the host's tree too; any other belongs to the instance. Of several
    mounts on one point, only the last is visible.
    """
    visible = {mount.point: mount for mount in theirs}
    places = []
    for mount in visible.values():
        if not mount.writable or (mount.kind == "devtmpfs" and mount.root in _HARMLESS_NODES):
            continue
        if mount.kind in KERNELS:
            places.append(WritableMount(path=_storable(mount.point), host=None, kind=mount.kind))
        elif (host := _on_host(mount, ours)) is not None:
            places.append(WritableMount(path=_storable(mount.point), host=_storable(host), kind=mount.kind))
    return places


def capabilities(bits: int) -> tuple[str, ...]:
    """Return the names of capabilities; unknown ones as ``cap_NUMBER``."""
    names = dict(enumerate(posture.CAPABILITIES))
    return tuple(f"cap_{names.get(number, number)}" for number in range(bits.bit_length()) if bits >> number & 1)


def identity(pid: int, thread: int) -> Identity:
    """Return the identity of a thread. Raises `OSError` if it has ended."""
    fields = process_table.status(pid, thread)
    if not fields:
        raise ProcessLookupError(errno.ESRCH, "it ended")
    return identity_of(fields)


def threads(pid: int) -> list[int]:
    """Return the threads of a process; empty if it has ended."""
    try:
        return sorted(int(entry.name) for entry in (_PROC / str(pid) / "task").iterdir())
    except OSError:
        return []


def foreign_namespaces(pid: int, thread: int) -> tuple[str, ...]:
    """Return the namespaces that a thread does not share with tare. Raises `OSError` if it has ended."""
    ours = _namespaces(_PROC / "self" / "ns")
    theirs = _namespaces(_PROC / str(pid) / "task" / str(thread) / "ns")
    return tuple(name for name, value in theirs.items() if value != ours[name])


def places(pid: int) -> tuple[WritableMount, ...]:
    """Return the writable places of a process. A process in the host's own tree has the whole tree."""
    folder = _PROC / str(pid)
    same_tree = _namespaces(folder / "ns")["mnt"] == _namespaces(_PROC / "self" / "ns")["mnt"]
    if same_tree and (folder / "root").readlink() == Path("/"):
        return (WritableMount(path="/", host="/", kind="all of the host's tree"),)
    return tuple(writable_places(mounts.table(pid), mounts.table()))


def open_descriptors(pid: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a process's open devices, and its open folders with the files that it has open for writing."""
    devices, held = set(), set()
    for link in process_table.descriptors(pid):
        with contextlib.suppress(OSError):
            status = link.stat()
            if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
                if (os.major(status.st_rdev), os.minor(status.st_rdev)) not in HARMLESS:
                    devices.add(_storable(link.readlink()))
            elif stat.S_ISDIR(status.st_mode) or (_is_file(status) and _for_writing(link)):
                held.add(_storable(link.readlink()))
    return tuple(sorted(devices)), tuple(sorted(held))


def _namespaces(folder: Path) -> dict[str, str]:
    names = (entry.name for entry in folder.iterdir() if not entry.name.endswith("_for_children"))
    return {name: str((folder / name).readlink()) for name in sorted(names)}


def _is_file(status: os.stat_result) -> bool:
    """Return True for a file with a name, as opposed to memory created as a file."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 0


def _for_writing(link: Path) -> bool:
    return process_table.open_flags(link) & os.O_ACCMODE != os.O_RDONLY


def _on_host(mount: mounts.Mount, ours: Sequence[mounts.Mount]) -> str | None:
    """Return the path of a mount in the host's tree, or None if it is not there."""
    above = [our_mount for our_mount in ours if our_mount.device == mount.device and _below(mount.root, our_mount.root)]
    if not above:
        return None
    best = max(above, key=lambda our_mount: len(our_mount.root))
    rest = mount.root[len(best.root.rstrip("/")) :]
    return (best.point.rstrip("/") + rest.rstrip("/")) or "/"


def _storable(path: str | Path) -> str:
    """Return the path as valid UTF-8 text for JSON: a name in a sandbox may contain any bytes."""
    return os.fsencode(path).decode(errors="replace")


def _below(path: str, folder: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")
