"""Whether a daemon listens, or only its socket is there: to call such a daemon would start it (socket activation)."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from tare.host.kernel import process_table
from tare.timeouts import stretched

#: Of a socket that is listened on, in ``/proc/net/unix`` (the kernel's ``__SO_ACCEPTCON``).
_LISTENS = 0x10000
#: A line of /proc/net/unix with a path: flags, inode, path.
_SOCKET = re.compile(rb"[0-9a-f]+: [0-9A-F]{8} [0-9A-F]{8} ([0-9A-F]{8}) [0-9A-F]{4} [0-9A-F]{2} +([0-9]+) (.+)")


#: How long a daemon may take to accept a connection.
CALL_LIMIT_S = 2.0


def accepts(path: str, limit_s: float = CALL_LIMIT_S) -> bool:
    """Whether a Unix socket takes a connection."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(stretched(limit_s))
        try:
            caller.connect(path)
        except OSError:
            return False
    return True


def runs(path: str) -> bool:
    """Whether a daemon listens there. A socket by which a request would only start one does not count."""
    return not only_init_listens(path) and accepts(path)


def only_init_listens(path: str, init: int = 1) -> bool:
    """Whether nobody but the init system has the socket at this path: the first request would start the daemon.

    Needs root, to see who has it; without, the answer is False.
    """
    inodes = set(_inodes(os.path.realpath(path)))
    if not inodes or not inodes <= _held_by(init):
        return False
    return not any(inodes & _held_by(pid) for pid in process_table.pids() if pid != init)


def _inodes(path: str) -> Iterator[str]:
    for line in Path("/proc/net/unix").read_bytes().split(b"\n"):
        # Num RefCount Protocol Flags Type St Inode Path; of a path any user chooses all bytes, line feeds too.
        socket = _SOCKET.fullmatch(line)
        if socket and int(socket[1], 16) & _LISTENS and os.path.realpath(os.fsdecode(socket[3])) == path:
            yield socket[2].decode()


def _held_by(pid: int) -> set[str]:
    sockets = (target for target in process_table.open_files(pid) if target.startswith("socket:["))
    return {target.removeprefix("socket:[").removesuffix("]") for target in sockets}
