"""Where tare keeps what it needs on a host: ``TARE_HOME``, by default ``/var/lib/tare``."""

from __future__ import annotations

import os
from pathlib import Path

from tare.errors import HostError

DEFAULT_HOME = Path("/var/lib/tare")
JOURNAL = "journal"


def home() -> Path:
    """The folder of everything below; made when it is missing. Raises `HostError` when it cannot be written."""
    folder = home_if_any()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise _unwritable(folder, error.strerror or str(error)) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unwritable(folder, "permission denied")
    return folder.resolve()


def home_if_any() -> Path:
    """The same folder, which may not be there."""
    return Path(os.environ.get("TARE_HOME") or DEFAULT_HOME)


def images() -> Path:
    """Cached images, by hash."""
    return _below("images")


def work() -> Path:
    """Folders of running instances; empty when no campaign runs."""
    return _below("work")


def journal() -> Path:
    """What tare made on the host and has not removed yet."""
    return _below(JOURNAL, mode=0o700)


def filesystem(folder: Path) -> str:
    """Kind and device of the filesystem that holds a folder, such as ``ext4 on /dev/sda1``."""
    return parse_filesystem(Path("/proc/self/mountinfo").read_text(), folder.resolve())


def parse_filesystem(mountinfo: str, folder: Path) -> str:
    """The same from the text of ``/proc/self/mountinfo`` (proc(5)): the longest mount point above the folder."""
    best, answer = -1, "unknown"
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        point = Path(before.split()[4].replace("\\040", " "))
        kind, device = after.split()[:2]
        if folder.is_relative_to(point) and len(point.parts) >= best:
            best, answer = len(point.parts), f"{kind} on {device}"
    return answer


def _below(name: str, mode: int = 0o777) -> Path:
    folder = home() / name
    folder.mkdir(exist_ok=True, mode=mode)
    return folder


def _unwritable(folder: Path, why: str) -> HostError:
    return HostError(f"{folder} cannot be written: {why}", fix="run as root, or set TARE_HOME to a folder of yours")
