"""Bait on the host for a guest: files, a process, a key, sockets. A guest that knows its secret has reached it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import socket
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tare.campaign.instances.launcher import InstanceLauncher, RunningInstance
from tare.contract import services
from tare.contract.doors import HostSecrets
from tare.errors import HostError
from tare.host import cgroup, processes, state
from tare.host.daemons import keyring
from tare.host.kernel import host_text, mounts
from tare.host.kernel.owner import boot_id
from tare.host.resources import removers
from tare.host.resources.claims import OPENED
from tare.host.resources.journal import CleanupStack

#: Read-only filesystems: an attempt to mount a disk as one of them does not change the disk.
READERS = ("iso9660", "squashfs", "erofs", "cramfs", "romfs", "udf")
#: Seconds after which a key expires even if its owner was killed.
KEY_LIFE_S = 120
GET_KEYRING_ID, UNLINK, EXPIRE = 0, 9, 15
SESSION_KEYRING, USER_KEYRING = -3, -4
#: name_to_handle_at(2): AT_FDCWD, and the largest size of a handle.
HERE, MAX_HANDLE = -100, 128
NOBODY = "65534"
FIND_LIMIT_S = 30.0
#: A variable of tare's own, as a CI's token is one.
VARIABLE = "BAIT_TOKEN"
#: Sockets of daemons that obey requests with root's rights, on hosts that have them.
DAEMONS = (
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/libvirt/libvirt-sock",
    "/var/lib/lxd/unix.socket",
    "/run/systemd/private",
    "/run/dbus/system_bus_socket",
)
#: In /proc/net/unix, of a socket that listens (__SO_ACCEPTCON).
_LISTENS = 0x10000


@dataclass(frozen=True, slots=True)
class Bait:
    """The bait: names that the instance is given, and the host's facts that it is not."""

    given: dict[str, str]
    host: HostSecrets
    setuid: str  # the name of the setuid file that a guest makes wherever it can


@contextlib.contextmanager
def laid(launcher: InstanceLauncher, running: RunningInstance) -> Iterator[Bait]:
    """Make the bait for an instance; it is removed when the context is left. Raises `HostError`."""
    secret, mark = secrets.token_hex(16), f"tare-{secrets.token_hex(8)}"
    cleanup = CleanupStack(launcher.journal)
    with contextlib.ExitStack() as ends:
        ends.callback(cleanup.release)
        canary = _file(cleanup, mark, secret)
        ends.enter_context(_process(mark))
        keys = ends.enter_context(_keys(mark, secret))
        ends.enter_context(_abstract_socket(mark))
        group = running.instance.spec.group
        values = {
            **dict.fromkeys(("process", "socket", "file"), mark),
            "canaries": f"{canary},{_readable_file(cleanup, mark, secret)}",
            "group": group.path,
            "limited": ",".join(map(_number, _folders(group))),
            "daemons": ",".join(listening_daemons(Path("/proc/net/unix").read_text())),
            **ends.enter_context(services.listening(secret)),
            **ends.enter_context(services.beyond(cleanup, secret)),
        }
        optional = {
            "key": mark if keys else None,
            "handle": _handle(canary),
            "disk": _disk(),
            "reader": _reader(),
            "variable": os.environ.get(VARIABLE),
        }
        values |= {name: value for name, value in optional.items() if value is not None}
        yield Bait(values, HostSecrets(secret, facts()), mark)


@contextlib.contextmanager
def in_environment() -> Iterator[None]:
    """Have the variable in tare's environment, from before the instances start whose doors are tried."""
    os.environ[VARIABLE] = secrets.token_hex(16)
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def facts() -> dict[str, str]:
    """The host's namespaces and boot id, by the same names as `tare-agent doors` prints those of the instance."""
    kinds = ("uts", "ipc", "pid", "user", "net", "mnt")
    return {kind: str(Path("/proc/self/ns", kind).readlink()) for kind in kinds} | {"boot": boot_id()}


def runnable_by_nobody(paths: list[Path]) -> list[Path]:
    """The setuid files that another user of this host can execute as their owner: reachable, on no nosuid mount."""
    setuid_files = [path for path in paths if _is_setuid(path)]
    if not setuid_files:
        return []
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    reached = 'for path; do test -x "$path" && printf "%s\\0" "$path"; done; true'
    done = processes.run([*as_nobody, "sh", "-c", reached, "sh", *map(str, setuid_files)])
    done.require()
    return [Path(os.fsdecode(path)) for path in done.stdout.split(b"\0") if path]


def places(running: RunningInstance, name: str) -> list[Path]:
    """Paths on this host of a file that was made in an instance, in /, /tmp, /data or /dev/shm, wherever it may be."""
    folder, data = running.instance.spec.space.folder, running.instance.spec.space.data
    below = {data, folder / "upper", folder / "root"}
    for mount in mounts.table():
        below.update(Path(place) for place in (mount.point, mount.upper) if place is not None)
    candidates = {base / part / name for base in below for part in (".", "tmp", "data", "dev/shm")}
    # An engine of the instance's own may keep the root anywhere in its folder, mounted where only it sees that.
    kept = processes.run(["find", str(folder), "-name", name, "-print0"], time_limit_s=FIND_LIMIT_S).stdout.split(b"\0")
    return sorted({*candidates, *(Path(os.fsdecode(path)) for path in kept if path)})


def _is_setuid(path: Path) -> bool:
    try:
        status = path.lstat()
        mounted = os.statvfs(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & stat.S_ISUID) and not mounted.f_flag & os.ST_NOSUID


def listening_daemons(sockets: str) -> list[str]:
    """The `DAEMONS` that somebody listens for on this host, by the contents of /proc/net/unix."""
    rows = [line.split(maxsplit=7) for line in sockets.splitlines()[1:]]
    listening = {row[7] for row in rows if len(row) == 8 and int(row[3], 16) & _LISTENS}
    return [path for path in DAEMONS if os.path.realpath(path) in listening or path in listening]


def _file(cleanup: CleanupStack, name: str, secret: str) -> Path:
    """A file that only root reads."""
    folder = state.work() / name
    cleanup.own(removers.folder(folder))
    folder.mkdir(mode=0o700)
    canary = folder / "canary"
    canary.write_text(secret)
    return canary


def _readable_file(cleanup: CleanupStack, name: str, secret: str) -> Path:
    """A file that every user of the host reads who knows its name: a guest may be such a user, and not root."""
    folder = OPENED / name
    cleanup.own(removers.folder(folder, below=OPENED.parent))
    OPENED.mkdir(mode=0o711, exist_ok=True)
    folder.mkdir(mode=0o711)
    canary = folder / "canary"
    canary.write_text(secret)
    canary.chmod(0o644)
    return canary


def _folders(group: cgroup.Group) -> list[Path]:
    """The group with an instance's limits in each hierarchy that has it; none where no groups are delegated."""
    mounted = cgroup.hierarchies().mounted if group.accounts else ()
    return [folder for root in mounted if (folder := root / group.path).is_dir()]


def _number(path: Path) -> str:
    """The number of a file and of its filesystem, by which it is known wherever that is mounted."""
    status = path.stat()
    return f"{status.st_dev}:{status.st_ino}"


@contextlib.contextmanager
def _process(mark: str) -> Iterator[None]:
    """A process with a name of its own; it ends with its standard input, and so with this process."""
    process = processes.start(["sh", "-c", "read -r _", mark], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        process.communicate()


@contextlib.contextmanager
def _abstract_socket(mark: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"\0{mark}")
        listener.listen(8)
        yield


@contextlib.contextmanager
def _keys(mark: str, secret: str) -> Iterator[bool]:
    """A key in the user's keyring and one in the session's; yields whether the kernel took one."""
    library = ctypes.CDLL(None, use_errno=True)
    numbers = keyring.CALLS.get(os.uname().machine)
    if numbers is None:
        raise HostError(f"the calls for keys are not known on {os.uname().machine}")
    add_key, keyctl = numbers
    payload = secret.encode()
    added = []
    try:
        for special in (USER_KEYRING, SESSION_KEYRING):
            # Not by its special number: that would make a session keyring where there is none.
            ring = library.syscall(keyctl, GET_KEYRING_ID, special, 0)
            key = library.syscall(add_key, b"user", mark.encode(), payload, len(payload), ring) if ring != -1 else -1
            if key != -1:
                library.syscall(keyctl, EXPIRE, key, KEY_LIFE_S)
                added.append((key, ring))
        yield bool(added)
    finally:
        for key, ring in added:
            library.syscall(keyctl, UNLINK, key, ring)


class _Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * MAX_HANDLE))


def _handle(path: Path) -> str | None:
    """The file's handle, as ``TYPE:HEXADECIMAL``; None where its filesystem has no handles."""
    library = ctypes.CDLL(None, use_errno=True)
    handle, mount = _Handle(bytes=MAX_HANDLE), ctypes.c_int()
    if library.name_to_handle_at(HERE, os.fsencode(path), ctypes.byref(handle), ctypes.byref(mount), 0) == -1:
        number = ctypes.get_errno()
        if number == errno.EOPNOTSUPP:
            return None
        raise HostError(f"{path} has no handle: {os.strerror(number)}")
    return f"{handle.type}:{bytes(handle.data[: handle.bytes]).hex()}"


def _disk() -> str | None:
    """The host's disk as ``MAJOR:MINOR``: that of TARE_HOME, else the largest; None where there is none."""
    device = state.work().stat().st_dev
    if os.major(device):  # else no block device: overlay, tmpfs, btrfs
        return f"{os.major(device)}:{os.minor(device)}"
    rows = [line.split() for line in host_text.read("/proc/partitions").splitlines()[2:]]
    largest = max(rows, key=lambda row: int(row[2]), default=None)
    return f"{largest[0]}:{largest[1]}" if largest else None


def _reader() -> str | None:
    kinds = {line.strip() for line in host_text.read("/proc/filesystems").splitlines() if line.startswith("\t")}
    return next((kind for kind in READERS if kind in kinds), None)
