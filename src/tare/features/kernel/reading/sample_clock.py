"""Clock that interrupts each CPU at regular intervals: the kernel's software clock, as a perf event.

Most virtual machines hide the processor's own counters. This clock is a timer of the kernel's and exists on every host.
It cannot see code that runs with interrupts off: the tick arrives when they are on again, and is counted there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from tare.errors import HostError
from tare.features.kernel.reading.bpf import LAB
from tare.host.kernel import cpulist, host_text

#: linux/perf_event.h.
_TYPE_SOFTWARE, _CPU_CLOCK = 1, 0
_DISABLED = 1 << 0
_CLOSED_ON_EXEC = 1 << 3
#: type, size, config, period, sample_type, read_format, flags, wakeup_events, bp_type, config1
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")
#: By architecture, because the C library has no function for perf_event_open.
_NUMBER = {"x86_64": 298, "aarch64": 241}


def clocks(period_ns: int) -> list[int]:
    """Open a stopped clock, with ticks every ``period_ns``, on each online CPU. Raises `HostError`.

    Returns the descriptors.
    """
    descriptors: list[int] = []
    try:
        for cpu in online():
            descriptors.append(_open(cpu, period_ns))
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return descriptors


def online() -> list[int]:
    """Return the numbers of the online CPUs."""
    return list(cpulist.parse(host_text.read("/sys/devices/system/cpu/online")))


def _open(cpu: int, period_ns: int) -> int:
    attributes = _ATTRIBUTES.pack(_TYPE_SOFTWARE, _ATTRIBUTES.size, _CPU_CLOCK, period_ns, 0, 0, _DISABLED, 0, 0, 0)
    call = ctypes.CDLL(None, use_errno=True).syscall
    number = _NUMBER.get(os.uname().machine)
    if number is None:
        raise HostError(f"tare does not know how {os.uname().machine} opens perf events", fix="use x86-64 or arm64")
    descriptor = call(number, attributes, -1, cpu, -1, _CLOSED_ON_EXEC)
    if descriptor >= 0:
        return int(descriptor)
    raise refused(ctypes.get_errno())


def refused(number: int) -> HostError:
    """Return the reason why the clock cannot be opened, by error number, with the fix."""
    if number in {errno.EPERM, errno.EACCES}:
        cause = "perf events are locked: kernel.perf_event_paranoid forbids them, or tare lacks the capability PERFMON"
        return HostError(cause, fix=f"run tare as root on the host itself, or {LAB}")
    if number == errno.ENOSYS:
        return HostError("this kernel has no perf events", fix=f"boot one with CONFIG_PERF_EVENTS, or {LAB}")
    return HostError(f"this kernel has no clock to sample by: {os.strerror(number)}", fix=LAB)
