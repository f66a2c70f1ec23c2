"""Frequency of this host's time stamp counter, as a program sees it, for the guest of an emulated processor."""

from __future__ import annotations

import ctypes
import functools
import mmap
import time
from collections.abc import Callable

from tare.errors import HostError

#: rdtsc; shl rdx, 32; or rax, rdx; ret
_READ = bytes.fromhex("0f31 48c1e220 4809d0 c3")
#: Readings of clock and counter lie within a microsecond, so this gives about 10 parts in a million.
_SPAN_S = 0.1
#: Readings, of which the one with the shortest time between its two looks at the clock counts.
_TRIES = 20


@functools.cache
def khz() -> int:
    """Return the counter's frequency, measured once against the host's raw monotonic clock. Raises `HostError`."""
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError as error:
        why = "the host allows no code that is made at run time"
        raise HostError(f"the time stamp counter cannot be read: {why} ({error.strerror})") from error
    memory.write(_READ)
    counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    ticks, at_ns = _read(counter)
    time.sleep(_SPAN_S)
    later, then_ns = _read(counter)
    return round((later - ticks) * 1e6 / (then_ns - at_ns))


def _read(counter: Callable[[], int]) -> tuple[int, int]:
    """Return the counter and the clock at the same moment."""
    readings = []
    for _ in range(_TRIES):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        ticks = counter()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        readings.append((after - before, ticks, (before + after) // 2))
    _, ticks, at_ns = min(readings)
    return ticks, at_ns
