"""Rights of a process on the host besides system calls: capabilities, identity, namespaces, mounts, open devices.

All of it is read from /proc (proc(5)). The parsers are pure functions on text.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tare.footprint_model import Place
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
#: The same where single nodes of the host's /dev are mounted, with the terminal that a process has itself.
_HARMLESS_NODES = frozenset(f"/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Identity:
    """The fields of /proc/PID/status of a thread."""

    name: str
    tracer: int  # 0: nobody
    uid: int  # effective
    gid: int
    effective: int  # capabilities, as bits
    bounding: int
    no_new_privs: bool
    seccomp: int  # 0 none, 1 strict, 2 filter
    filters: int | None  # how many are stacked; None where the kernel does not say (before 5.9)

    def nameless(self) -> Identity:
        """The identity without the thread's name: threads that differ in nothing else then have equal ones."""
        return replace(self, name="")


def identity_of(fields: Mapping[str, str]) -> Identity:
    """The identity in the fields of /proc/PID/status."""
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


def writable_places(theirs: Sequence[mounts.Mount], ours: Sequence[mounts.Mount]) -> list[Place]:
    """The parts of the host's tree, or of its kernel's settings, that a process sees at a writable mount.

    A filesystem is the host's when it is mounted in the host's tree too; the others are the instance's alone. Of mounts
    on one point only the last can be seen.
    """
    visible = {mount.point: mount for mount in theirs}
    places = []
    for mount in visible.values():
        if not mount.writable or (mount.kind == "devtmpfs" and mount.root in _HARMLESS_NODES):
            continue
        if mount.kind in KERNELS:
            places.append(Place(path=_storable(mount.point), host=None, kind=mount.kind))
        elif (host := _on_host(mount, ours)) is not None:
            places.append(Place(path=_storable(mount.point), host=_storable(host), kind=mount.kind))
    return places


def capabilities(bits: int) -> tuple[str, ...]:
    """The names of capabilities; those that are not known as ``cap_NUMBER``."""
    names = dict(enumerate(posture.CAPABILITIES))
    return tuple(f"cap_{names.get(number, number)}" for number in range(bits.bit_length()) if bits >> number & 1)


def identity(pid: int, thread: int) -> Identity:
    """The identity of a thread. Raises `OSError` when it has ended."""
    fields = process_table.status(pid, thread)
    if not fields:
        raise ProcessLookupError(errno.ESRCH, "it ended")
    return identity_of(fields)


def threads(pid: int) -> list[int]:
    """The threads of a process; none when it has ended."""
    try:
        return sorted(int(entry.name) for entry in (_PROC / str(pid) / "task").iterdir())
    except OSError:
        return []


def foreign_namespaces(pid: int, thread: int) -> tuple[str, ...]:
    """The namespaces of a thread that are not tare's own. Raises `OSError` when it has ended."""
    ours = _namespaces(_PROC / "self" / "ns")
    theirs = _namespaces(_PROC / str(pid) / "task" / str(thread) / "ns")
    return tuple(name for name, value in theirs.items() if value != ours[name])


def places(pid: int) -> tuple[Place, ...]:
    """The writable places of a process. One in the host's own tree has that as a whole."""
    folder = _PROC / str(pid)
    same_tree = _namespaces(folder / "ns")["mnt"] == _namespaces(_PROC / "self" / "ns")["mnt"]
    if same_tree and (folder / "root").readlink() == Path("/"):
        return (Place(path="/", host="/", kind="all of the host's tree"),)
    return tuple(writable_places(mounts.table(pid), mounts.table()))


def open_descriptors(pid: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The devices that a process has open, and the folders, with the files that it has open for writing."""
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
    """Whether it is a file with a name, and not memory that was made as one."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 0


def _for_writing(link: Path) -> bool:
    return process_table.open_flags(link) & os.O_ACCMODE != os.O_RDONLY


def _on_host(mount: mounts.Mount, ours: Sequence[mounts.Mount]) -> str | None:
    """Where the host's tree has what is mounted; None where it has not."""
    above = [our_mount for our_mount in ours if our_mount.device == mount.device and _below(mount.root, our_mount.root)]
    if not above:
        return None
    best = max(above, key=lambda our_mount: len(our_mount.root))
    rest = mount.root[len(best.root.rstrip("/")) :]
    return (best.point.rstrip("/") + rest.rstrip("/")) or "/"


def _storable(path: str | Path) -> str:
    """The path as text: a name in a sandbox may be any bytes, and no file of JSON takes what is no UTF-8."""
    return os.fsencode(path).decode(errors="replace")


def _below(path: str, folder: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")
