"""Detection of daemons that listen, as opposed to a socket alone: a call to such a socket would start the daemon."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from tare.host.kernel import process_table
from tare.timeouts import stretched

#: Flag of a listening socket in ``/proc/net/unix`` (the kernel's ``__SO_ACCEPTCON``).
_LISTENS = 0x10000
#: A line of /proc/net/unix with a path: flags, inode, path.
_SOCKET = re.compile(rb"[0-9a-f]+: [0-9A-F]{8} [0-9A-F]{8} ([0-9A-F]{8}) [0-9A-F]{4} [0-9A-F]{2} +([0-9]+) (.+)")


#: Time limit for a daemon to accept a connection, in seconds.
CALL_LIMIT_S = 2.0


def accepts(path: str, limit_s: float = CALL_LIMIT_S) -> bool:
    """Return True if a Unix socket accepts a connection."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(stretched(limit_s))
        try:
            caller.connect(path)
        except OSError:
            return False
    return True


def runs(path: str) -> bool:
    """Return True if a daemon listens there. A socket that would only start it does not count."""
    return not only_init_listens(path) and accepts(path)


def only_init_listens(path: str, init: int = 1) -> bool:
    """Return True if only the init system has the socket at this path, so the first request would start the daemon.

    Needs root to see the owners of a socket; without root, the answer is False.
    """
    inodes = set(_inodes(os.path.realpath(path)))
    if not inodes or not inodes <= _held_by(init):
        return False
    return not any(inodes & _held_by(pid) for pid in process_table.pids() if pid != init)


def _inodes(path: str) -> Iterator[str]:
    for line in Path("/proc/net/unix").read_bytes().split(b"\n"):
        # Num RefCount Protocol Flags Type St Inode Path. Any user can choose all bytes of a path, even line feeds.
        socket = _SOCKET.fullmatch(line)
        if socket and int(socket[1], 16) & _LISTENS and os.path.realpath(os.fsdecode(socket[3])) == path:
            yield socket[2].decode()


def _held_by(pid: int) -> set[str]:
    sockets = (target for target in process_table.open_files(pid) if target.startswith("socket:["))
    return {target.removeprefix("socket:[").removesuffix("]") for target in sockets}
