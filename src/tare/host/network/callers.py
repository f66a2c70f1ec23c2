"""The callers of a port of tare's that others may call too: by the kernel's tables of connections.

Every user of the host, every instance on the bridge and every container of the host's may connect to an address of the
host. Whoever is taken for an agent is given a trial's work, and says what it measured.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from tare.host.kernel import host_text

#: The kernel's tables of TCP connections of this process's network namespace (proc(5)).
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_TURN_S = 0.1
_MAPPED = b"\0" * 10 + b"\xff" * 2


def user_of(connection: socket.socket) -> int | None:
    """Return the user whose process in this network namespace called; None if the call came from elsewhere.

    A connection that its process has closed is nobody's any more, although the kernel says root of it.
    """
    theirs, ours = connection.getpeername()[:2], connection.getsockname()[:2]
    for table, mapped in zip(TABLES, (b"", _MAPPED), strict=True):
        ends = [_written(mapped, *theirs), _written(mapped, *ours)]
        for line in host_text.said(table).splitlines()[1:]:
            fields = line.split()
            if fields[1:3] == ends and fields[9] != "0":
                return int(fields[7])
    return None


def accepted(
    listener: socket.socket, is_agent: Callable[[socket.socket], bool], turn: Callable[[], object]
) -> socket.socket:
    """Return the first connection that is an agent's, and close others.

    ``turn``: is called for each that is not, and where none came for a while; it raises to give up.
    """
    listener.settimeout(_TURN_S)
    while True:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            turn()
            continue
        with contextlib.suppress(OSError):  # the other end has reset it meanwhile
            if is_agent(connection):
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
        connection.close()
        turn()


def is_hosts_root(connection: socket.socket) -> bool:
    """Return True if a process of root's in this network namespace called, as one in a pod on the node's network."""
    return user_of(connection) == 0


def _written(mapped: bytes, address: str, port: int) -> str:
    """Return an end of a connection as the tables have it: words of the machine's byte order, in hexadecimal."""
    packed = mapped + socket.inet_aton(address)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"
