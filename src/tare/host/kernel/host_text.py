"""Reader of the host's texts (kernel, firmware, configuration, users), which may contain any bytes.

A file may be missing (a /proc of ``subset=pid``, a /sys of a container) or contain bytes that are not UTF-8 (a
processor's name, a vendor in the firmware's tables, names of files and sockets that any user may choose).
"""

from __future__ import annotations

import os
from pathlib import Path


def read(path: Path | str) -> str:
    r"""Return a file's text, with bytes that are not UTF-8 as ``\xff``. Raises `OSError`.

    Uses system calls, because `Path.read_text` takes twice as long, and the telemetry reads ten files twice a second.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
    finally:
        os.close(descriptor)
    return b"".join(parts).decode("utf-8", "backslashreplace")


def said(path: Path | str) -> str:
    """Return a file's text without white space at its ends; "" if it is missing, unreadable or empty."""
    try:
        return read(path).strip()
    except OSError:
        return ""
