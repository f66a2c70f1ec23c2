"""Firecracker's API: HTTP over a Unix socket, and the requests that pause a machine, write it and load it.

The names are those of Firecracker's API description (firecracker.yaml).
"""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tare.errors import PlatformError
from tare.timeouts import stretched, until

#: For its API's socket to be there, and for an answer.
API_LIMIT_S = 10.0
#: For the answer to a snapshot: the guest's memory is on the disk by then.
SNAPSHOT_LIMIT_S = 120.0
ANSWER_CAP = 1 << 16
#: Files of a snapshot: of the machine's state and of its memory.
STATE, MEMORY = "snapshot", "memory"
#: Requests (method, path, body) after which a machine stands still, and goes on.
PAUSE: Final = ("PATCH", "/vm", {"state": "Paused"})
RESUME: Final = ("PATCH", "/vm", {"state": "Resumed"})


class Api(http.client.HTTPConnection):
    """HTTP over Firecracker's Unix socket."""

    def __init__(self, place: Path, limit_s: float = API_LIMIT_S) -> None:
        super().__init__("localhost", timeout=stretched(limit_s))
        self._place = place

    def connect(self) -> None:
        """Connect to the socket."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(self.timeout)
        try:
            connection.connect(str(self._place))
        except OSError:
            connection.close()
            raise
        self.sock = connection

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Send one PUT request. Raises `PlatformError` with Firecracker's message where it refuses."""
        self.tell("PUT", path, body)

    def tell(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        """Send one request with this HTTP method. Raises `PlatformError` where it is not answered, or refused."""
        try:
            self.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
            answer = self.getresponse()
            body_text = answer.read(ANSWER_CAP).decode(errors="replace").strip()
        except (OSError, http.client.HTTPException) as error:
            raise PlatformError(f"Firecracker's API does not answer to {method} {path}: {error}") from error
        if answer.status >= 300:
            raise PlatformError(f"Firecracker refuses {method} {path}: {fault(body_text)}")


def fault(body: str) -> str:
    """Return the ``fault_message`` in the body of an answer, else the body."""
    try:
        return str(json.loads(body)["fault_message"])
    except (ValueError, KeyError, TypeError):
        return body or "no message"


def configure(
    place: Path, puts: Sequence[tuple[str, dict[str, Any]]], gone: Callable[[], bool] = lambda: False
) -> None:
    """Send PUT requests (path, body) to the API of a Firecracker that may still be starting. Raises `PlatformError`.

    ``gone``: whether its process has ended, where that is known.
    """
    deadline = until(API_LIMIT_S)
    api = Api(place)
    while True:
        try:
            api.connect()
            break
        except OSError as error:
            if gone() or time.monotonic() > deadline:
                raise PlatformError("Firecracker's API socket does not come up") from error
            time.sleep(0.001)
    try:
        for path, body in puts:
            api.put(path, body)
    finally:
        api.close()


def snapshot(state: str, memory: str) -> tuple[str, str, dict[str, Any]]:
    """Return the request (method, path, body) that writes a paused machine to two files, whole."""
    files = {"snapshot_path": state, "mem_file_path": memory}
    return "PUT", "/snapshot/create", {"snapshot_type": "Full", **files}


def load(state: str, memory: str, tap: str | None = None) -> tuple[str, dict[str, Any]]:
    """Return the PUT request (path, body) by which a new process becomes that machine and goes on.

    ``tap``: its TAP in place of that machine's.
    """
    other = {} if tap is None else {"network_overrides": [{"iface_id": "eth0", "host_dev_name": tap}]}
    backend = {"backend_type": "File", "backend_path": memory}
    return "/snapshot/load", {"snapshot_path": state, "mem_backend": backend, "resume_vm": True, **other}
