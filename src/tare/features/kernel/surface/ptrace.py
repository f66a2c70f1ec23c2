"""Reader of a live thread's seccomp filters, from the kernel (ptrace(2), PTRACE_SECCOMP_GET_FILTER).

A thread must be stopped for the request. It is stopped without a signal, for less than a millisecond, and then
continues. The kernel restarts the call in which it waits, except for the few calls that any stop ends with EINTR
(signal(7)). A thread of tare's that lives only for this purpose does all the work. When it ends, or tare is killed, the
kernel detaches from every traced thread.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence

from tare.errors import HostError
from tare.host import processes
from tare.host.host_checks import HostCheck
from tare.host.kernel import process_table
from tare.timeouts import until

#: linux/ptrace.h, linux/wait.h
_SEIZE, _INTERRUPT, _DETACH, _GET_FILTER = 0x4206, 0x4207, 17, 0x420C
_WALL = 0x40000000
#: A thread that has not stopped within this time waits for a device, so tare gives up.
STOP_LIMIT_S = 1.0
#: Above the kernel's limit, which allows 32,768 instructions in one stack (MAX_INSNS_PER_PATH).
_MAX_FILTERS = 32_768

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)

#: A thread's filters as bytes, newest first, or the reason why they could not be read.
Answer = tuple[bytes, ...] | HostError

NOT_BUILT = "this kernel does not give filters out (CONFIG_CHECKPOINT_RESTORE is off)"
_LAB = "a kernel with it, or a lab: tare lab run -- tare surface PLATFORM"


def installed(threads: Sequence[int]) -> dict[int, Answer]:
    """Return the filters of each thread. Threads that ended in the meantime are left out.

    Do not call it while another thread of tare's waits for one of these threads as its child: that thread might consume
    the stop.
    """
    programs: dict[int, Answer] = {}

    def ask() -> None:
        for thread in threads:
            try:
                programs[thread] = _of(thread)
            except HostError as error:
                programs[thread] = error
            except ProcessLookupError:
                continue

    # When a thread ends, the kernel detaches it from all that it traces.
    asking = threading.Thread(target=ask, name="ptrace")
    asking.start()
    asking.join()
    return programs


def _of(thread: int) -> tuple[bytes, ...]:
    """Stop a thread, read its filters, detach. Raises `HostError`, or `ProcessLookupError` if it ended."""
    try:
        _ptrace(_SEIZE, thread)
    except PermissionError as error:
        raise _held_by_another(thread) from error
    went_on_with = 0
    stopped = False
    try:
        _ptrace(_INTERRUPT, thread)
        went_on_with = _await_stop(thread)
        stopped = True
        return _filters(thread)
    finally:
        # A running thread cannot be detached; the kernel does so when this thread of tare's ends.
        if stopped:
            _ptrace(_DETACH, thread, data=went_on_with)


def _await_stop(thread: int) -> int:
    """Wait until the thread has stopped. Return the signal that it was about to receive, to be passed on, or 0."""
    deadline = until(STOP_LIMIT_S)
    while True:
        pid, status = os.waitpid(thread, os.WNOHANG | _WALL)
        if pid:
            break
        if time.monotonic() > deadline:
            raise HostError("it does not stop to be asked: it waits for a device", fix="try again")
        time.sleep(0.00002)
    if not os.WIFSTOPPED(status):
        raise ProcessLookupError(errno.ESRCH, "it ended")
    # A stop by ptrace has its event above. Any other stop delivers a signal, which must not be lost.
    return 0 if status >> 16 else os.WSTOPSIG(status)


def _filters(thread: int) -> tuple[bytes, ...]:
    """Read the programs, newest first. The kernel counts from the oldest."""
    programs = []
    for index in range(_MAX_FILTERS):
        try:
            size = _ptrace(_GET_FILTER, thread, index)
            program = ctypes.create_string_buffer(size * 8)
            _ptrace(_GET_FILTER, thread, index, ctypes.addressof(program))
        except FileNotFoundError:  # The index is past the last filter.
            break
        except OSError as error:
            raise _refused(error) from error
        programs.append(program.raw)
    return tuple(reversed(programs))


def _ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> int:
    result = int(_libc.ptrace(request, thread, address, data))
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _held_by_another(thread: int) -> HostError:
    tracer = process_table.status(thread).get("TracerPid", "0")
    if tracer != "0":
        name = process_table.status(int(tracer)).get("Name", "unknown")
        problem = f"another process ({name}) traces it, and a thread has one tracer"
        return HostError(problem, fix="end the tracer, if it is none of the platform's own")
    return HostError("the kernel does not let it be traced", fix="run tare as root (sudo) with CAP_SYS_PTRACE")


def _refused(error: OSError) -> HostError:
    # The thread has filters, as only such threads are queried, so EINVAL has another cause.
    if error.errno == errno.EINVAL:
        return HostError(NOT_BUILT, fix=_LAB)
    if error.errno == errno.EACCES:
        mode = process_table.status(os.getpid()).get("Seccomp", "0")
        if mode != "0":
            problem = "tare itself runs under seccomp, and so may not read filters"
            return HostError(problem, fix="run tare on the host itself")
        return HostError("reading filters needs CAP_SYS_ADMIN", fix="run tare as root (sudo)")
    if error.errno == errno.EMEDIUMTYPE:
        return HostError("it has a filter that is not classic BPF, which the kernel does not give out")
    return HostError(f"the kernel does not give its filters out: {error.strerror}", fix=_LAB)


#: Program that installs a filter that allows everything, prints "ready", and waits for the end of its input.
_FILTERED = """
import ctypes, sys
libc = ctypes.CDLL(None)
program = ctypes.create_string_buffer((6).to_bytes(4, sys.byteorder) + (0x7fff0000).to_bytes(4, sys.byteorder), 8)
class Fprog(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]
fprog = Fprog(1, ctypes.addressof(program))
none = ctypes.c_ulong(0)
libc.prctl(38, ctypes.c_ulong(1), none, none, none)
assert libc.prctl(22, ctypes.c_ulong(2), ctypes.byref(fprog), none, none) == 0
print("ready", flush=True)
sys.stdin.read()
"""


def check() -> HostCheck:
    """Check that filters can be read here, by reading one."""
    name, use = "seccomp filters", "tare surface cannot tell what a platform may call"
    argv = [sys.executable, "-I", "-c", _FILTERED]
    child = processes.start(argv, stdin=-1, stdout=-1)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        if child.stdout.readline() != b"ready\n":
            return HostCheck(name, "warn", "none can be installed", f"{use}: this kernel has no seccomp")
        answer = installed([child.pid]).get(child.pid)
    finally:
        child.stdin.close()
        child.stdout.close()
        child.send_signal(signal.SIGKILL)
        child.wait()
    if isinstance(answer, tuple):
        return HostCheck(name, "ok", "can be read from live processes: tare surface")
    problem = answer.what if answer else "the process ended"
    return HostCheck(name, "warn", problem, f"{use}: {answer.fix if answer and answer.fix else 'try again'}")
