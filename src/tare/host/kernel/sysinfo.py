"""The kernel's answer to sysinfo(2), for a host whose /proc does not show these facts."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass

#: Larger than Linux's ``struct sysinfo``.
_BYTES = 256
#: uptime, three loads, RAM and free, shared and buffers, swap and free, processes, padding, high memory and free, unit
_FORM = "@l3L6L2H2LI"
_ONE = 1 << 16  # Of a load, which is a fixed-point number.


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """Facts from sysinfo(2). Sizes in bytes."""

    load: float  # Over the last minute.
    memory_bytes: int
    swap_bytes: int


def read() -> SystemInfo:
    """Query the kernel, which always answers."""
    answer = ctypes.create_string_buffer(_BYTES)
    ctypes.CDLL(None).sysinfo(answer)
    _, load, _, _, memory, _, _, _, swap, *_, unit = struct.unpack_from(_FORM, answer)
    return SystemInfo(load / _ONE, memory * unit, swap * unit)
