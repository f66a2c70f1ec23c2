"""Single system calls that the kernel alone answers: in and out, bytes of devices, names, clocks, events, signals.

`call-getpid` does nothing in the kernel: it is the cost of entering and leaving it, which is part of all others.
`call-clock-vdso` reads the clock without a call, by the code page that the kernel maps for that (vDSO): a platform that
has none (or whose clock cannot be read that way) is slow here. `call-signal` is a signal of a thread to itself with its
handler.
"""

from __future__ import annotations

from tare.workloads.kernel.unit import unit_cost

WORKLOADS = (
    unit_cost("call-getpid", "getpid: into the kernel and back", "getpid"),
    unit_cost("call-read-1b", "read of 1 byte of /dev/zero", "read-1b"),
    unit_cost("call-read-4k", "read of 4 KiB of /dev/zero", "read-4k"),
    unit_cost("call-write-1b", "write of 1 byte to /dev/null", "write-1b"),
    unit_cost("call-write-4k", "write of 4 KiB to /dev/null", "write-4k"),
    unit_cost("call-open", "open and close of a file in /data", "open"),
    unit_cost("call-stat", "stat of a file in /data", "stat"),
    unit_cost("call-clock-vdso", "reading the clock as programs do (vDSO)", "clock-vdso"),
    unit_cost("call-clock-syscall", "reading the clock by a system call", "clock-syscall"),
    unit_cost("call-epoll", "epoll_wait with a descriptor that is ready", "epoll"),
    unit_cost("call-signal", "a signal to oneself, and its handler", "signal"),
)
