"""Mounting by the system call itself.

A ``mount`` command that outlives a killed tare would mount after the cleaning has looked; a system call ends with its
caller. Python has none for it.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from tare.errors import HostError

#: mount(2)
READ_ONLY, NO_SETUID, NO_DEVICES, BIND = 1, 2, 4, 4096


def mount(kind: str, target: Path, *, source: str = "", flags: int = 0, options: str = "", fix: str = "") -> None:
    """Mount ``source`` (by default the filesystem's own name) on a folder. Raises `HostError` with ``fix``."""
    named = [os.fsencode(text) for text in (source or kind, str(target), kind, options)]
    if ctypes.CDLL(None, use_errno=True).mount(named[0], named[1], named[2], ctypes.c_ulong(flags), named[3]) != 0:
        why = os.strerror(ctypes.get_errno())
        raise HostError(f"{source or kind} cannot be mounted on {target}: {why}", fix=fix or "see what dmesg says")
