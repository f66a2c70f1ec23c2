"""The lock of this host: one session of tare at a time, whatever its TARE_HOME.

Two sessions would disturb each other's measurements, and share resources of the same name (`resource.is_shared`), which
the first to end would take from the other. For this purpose, a host is what two sessions share: the control groups and
the network. So the lock is named by their namespaces, in a folder that only root can write. The kernel releases it
however its holder ends. A user without root has a lock in the user's own folder, and sees none of root's resources.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tare.errors import HostError
from tare.host import own_namespaces, state

FOLDER = Path("/run/tare")
#: Limit of recorded characters of the holder's command line.
MAX_COMMAND = 200
_held = False  # By this process.


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds the lock. Fields that it has not written yet are empty or 0."""

    pid: int = 0
    command: str = ""
    since: str = ""  # Local time, to the second.

    def __str__(self) -> str:
        if not self.pid:
            return "a process that has just begun"
        return f"process {self.pid} (`{self.command}`, since {self.since})"


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Hold this host's lock for one session. Raises `HostError` with the name of its holder."""
    global _held  # noqa: PLW0603 (a lock is the process's)
    if os.geteuid() != 0:
        raise HostError("sandboxes and their accounting need root", fix="run tare as root (sudo)")
    with _tried() as holder:
        if holder is not None:
            problem = f"another tare has this host, and two would measure each other: {holder}"
            raise HostError(problem, fix=_wait(holder))
        _held = True
        try:
            yield
        finally:
            _held = False


@contextlib.contextmanager
def held_if_free() -> Iterator[Holder | None]:
    """Hold the lock and yield None, or yield the other process that holds it.

    Without root's rights, or if this process already holds it, nothing is locked.
    """
    global _held  # noqa: PLW0603 (as above)
    if _held or os.geteuid() != 0:
        yield None
        return
    with _tried() as holder:
        _held = holder is None
        try:
            yield holder
        finally:
            _held = False


@contextlib.contextmanager
def _tried() -> Iterator[Holder | None]:
    """Hold the lock and yield None, or yield its holder."""
    descriptor = _opened()
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield _read(descriptor)
            return
        # In its own namespaces, a process has another number than on the host, where somebody may wait for it.
        pid = int(os.environ.get("TARE_LOCK_HOLDER") or 0) if own_namespaces.inside() else 0
        me = Holder(pid or os.getpid(), _command(), time.strftime("%Y-%m-%d %H:%M:%S"))
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(me)).encode(), 0)
        yield None
    finally:
        os.close(descriptor)


def _opened() -> int:
    """Return a descriptor of the lock's file. Raises `HostError` if the file cannot be trusted."""
    file = _place()
    folder = file.parent
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise HostError(f"others can write {folder}", fix=f"see what is in it, and remove it: rm -r {folder}")
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise HostError(
            f"the lock {file} cannot be opened: {error.strerror}", fix="give tare a /run that it can write"
        ) from error


def _place() -> Path:
    """Return the path of the lock's file."""
    if own_namespaces.inside():
        run_time = os.environ.get("XDG_RUNTIME_DIR", "")
        if run_time and os.access(run_time, os.W_OK | os.X_OK):
            return Path(run_time, "tare", "lock")
        return state.home() / "lock" / "lock"
    # For example net:[4026531840].
    namespaces = (str(Path("/proc/self/ns", kind).readlink()) for kind in ("cgroup", "net"))
    return FOLDER / "-".join(name.replace(":[", "").rstrip("]") for name in namespaces)


def _read(descriptor: int) -> Holder:
    try:
        return Holder(**json.loads(os.pread(descriptor, 1 << 12, 0)))
    except (ValueError, TypeError):  # The holder is about to write it.
        return Holder()


def _wait(holder: Holder) -> str:
    if not holder.pid:
        return "try again, and it says who it is"
    return f"wait for its end (`tail --pid={holder.pid} -f /dev/null`), or interrupt it (`kill -INT {holder.pid}`)"


def _command() -> str:
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:MAX_COMMAND]
