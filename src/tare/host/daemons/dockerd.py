"""Whether a Docker daemon listens: asked before the SDK is used, which leaks a socket each time that none does."""

from __future__ import annotations

import os
import socket

from tare.timeouts import stretched

SOCKET = "/var/run/docker.sock"
LIMIT_S = 5.0


def named() -> str:
    """The daemon that the environment names, as ``DOCKER_HOST`` has it; "": the usual one."""
    return os.environ.get("DOCKER_HOST", "")


def listens(host: str) -> bool:
    """Whether a daemon listens there. Always True for what is no Unix socket: only a request can show it."""
    path = host.removeprefix("unix://") or SOCKET
    if "://" in path:
        return True
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(stretched(LIMIT_S))
        try:
            caller.connect(path)
        except OSError:
            return False
    return True
