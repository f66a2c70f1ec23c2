"""QEMU's monitor, asked as its users' programs do: one JSON object a line (QMP, docs/interop/qmp-spec of QEMU)."""

from __future__ import annotations

import json
import shlex
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from tare.errors import PlatformError
from tare.timeouts import stretched, until

LIMIT_S = 30.0
#: Of a machine's state, written to a file or read from it.
STATE_LIMIT_S = 60.0
#: Time between two requests to the monitor for that state.
LOOK_S = 0.005
#: Limit of an answer, which is some hundred bytes long.
MOST_BYTES = 1 << 20
#: Bytes a second: by default a machine's state is sent as over a network that others share.
UNLIMITED = 1 << 40


class LineStream(Protocol):
    """A stream of lines both ways."""

    def readline(self, size: int = -1, /) -> bytes:
        """One line, and no more bytes than this."""

    def write(self, data: bytes, /) -> int:
        """Send bytes, at the latest with `flush`."""

    def flush(self) -> None:
        """Send what was written."""


class QmpMonitor:
    """A connection to a machine's monitor."""

    def __init__(self, stream: LineStream) -> None:
        self._stream = stream

    def ask(self, command: str, arguments: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Carry out a command and return its answer; an empty one where the machine has ended."""
        request = {"execute": command, **({"arguments": arguments} if arguments else {})}
        self._stream.write(json.dumps(request).encode() + b"\n")
        self._stream.flush()
        while "return" not in (message := _message(self._stream.readline(MOST_BYTES))) and message:
            continue  # events come in between
        answer = message.get("return", {})
        return answer if isinstance(answer, dict) else {}

    def wait_for(self, command: str, status: str) -> None:
        """Ask again and again until the answer has this status. Raises `PlatformError` where it fails, or is late."""
        deadline = until(STATE_LIMIT_S)
        while (shown := self.ask(command).get("status")) != status:
            if shown == "failed" or time.monotonic() > deadline:
                raise PlatformError(f"QEMU's {command} says {shown}, and not {status}")
            time.sleep(LOOK_S)


@contextmanager
def connected(monitor: Path, *, begins: bool = False) -> Iterator[QmpMonitor]:
    """Connect to a machine's monitor. Raises `PlatformError`, also where it does not answer in the context.

    ``begins``: the machine begins, and its monitor is waited for.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(stretched(LIMIT_S))
            _connect(connection, monitor, until(LIMIT_S if begins else 0.0))
            with connection.makefile("rwb") as stream:
                _message(stream.readline(MOST_BYTES), "QMP")
                asked = QmpMonitor(stream)
                asked.ask("qmp_capabilities")
                yield asked
    except OSError as error:
        raise PlatformError(f"QEMU's monitor does not answer: {error.strerror or error}") from error


def _connect(connection: socket.socket, monitor: Path, deadline: float) -> None:
    """Connect, at the latest at the deadline. Raises `OSError`."""
    while True:
        try:
            connection.connect(str(monitor))
        except (FileNotFoundError, ConnectionRefusedError):  # it is there before QEMU listens
            if time.monotonic() >= deadline:
                raise
            time.sleep(LOOK_S)
        else:
            return


def ask(monitor: Path, command: str) -> bytes:
    """Connect, and carry out a command; returns nothing. Raises `PlatformError`."""
    with connected(monitor) as asked:
        asked.ask(command)
    return b""


def save(monitor: QmpMonitor, state: Path) -> None:
    """Write the state of a machine that stands to a file. Raises `PlatformError`."""
    monitor.ask("migrate-set-parameters", {"max-bandwidth": UNLIMITED})
    monitor.ask("migrate", {"uri": f"exec:cat > {shlex.quote(str(state))}"})
    monitor.wait_for("query-migrate", "completed")


def incoming(state: Path) -> list[str]:
    """Return the options with which a machine begins with that state, and stands."""
    return ["-incoming", f"exec:cat {shlex.quote(str(state))}"]


def _message(line: bytes, expected: str = "") -> dict[str, Any]:
    """One message; an empty one where the monitor has closed, as after its machine's end."""
    if not line:
        return {}
    try:
        message = json.loads(line)
    except ValueError as error:
        raise PlatformError(f"QEMU's monitor says {line[:80]!r}") from error
    if not isinstance(message, dict) or (expected and expected not in message):
        raise PlatformError(f"QEMU's monitor says {line[:80]!r}")
    if "error" in message:
        raise PlatformError(f"QEMU's monitor refuses: {message['error'].get('desc', message['error'])}")
    return message
