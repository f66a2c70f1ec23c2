"""QEMU's monitor, asked as its users' programs do: one JSON object a line (QMP, docs/interop/qmp-spec of QEMU)."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from tare.errors import PlatformError
from tare.timeouts import stretched

LIMIT_S = 30.0
#: An answer is some hundred bytes long; a monitor that says more is none.
MOST_BYTES = 1 << 20


def ask(monitor: Path, command: str) -> bytes:
    """Connect to a machine's monitor and carry out a command; returns nothing. Raises `PlatformError`."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(stretched(LIMIT_S))
            connection.connect(str(monitor))
            with connection.makefile("rwb") as stream:
                _answer(stream.readline(MOST_BYTES), "QMP")
                for name in ("qmp_capabilities", command):
                    stream.write(json.dumps({"execute": name}).encode() + b"\n")
                    stream.flush()
                    while "return" not in (said := _answer(stream.readline(MOST_BYTES))) and said:
                        continue  # events come in between
        return b""
    except OSError as error:
        raise PlatformError(f"QEMU's monitor does not answer to {command}: {error.strerror or error}") from error


def _answer(line: bytes, expected: str = "") -> dict[str, Any]:
    """One message; an empty one where the monitor has closed, as after its machine's end."""
    if not line:
        return {}
    try:
        said = json.loads(line)
    except ValueError as error:
        raise PlatformError(f"QEMU's monitor says {line[:80]!r}") from error
    if not isinstance(said, dict) or (expected and expected not in said):
        raise PlatformError(f"QEMU's monitor says {line[:80]!r}")
    if "error" in said:
        raise PlatformError(f"QEMU's monitor refuses: {said['error'].get('desc', said['error'])}")
    return said
