"""Limits of tare's own process, found by trying: with too few files or threads, tare could not even clean up.

Limits have many sources (``ulimit``, a service's settings, control groups above this one), and libraries that hit a
limit hang or abort. So every command first tries to get what it needs (`require`). `explained` names the limit behind
an error of the system.
"""

from __future__ import annotations

import errno
import mmap
import os
import resource
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

from tare.errors import HostError
from tare.host.kernel import host_text, mounts

#: Open files of a command: pipes of several children, libraries, a campaign's file.
FILES = 48
#: Address space for reading a campaign, in bytes: libraries reserve far more than they use.
ADDRESSES = 1300 << 20
#: Private writable memory beside the stacks of threads, in bytes: below some 200 MiB libraries hang.
DATA = 256 << 20
#: Threads and processes of a command that starts instances. Other commands need only those of their libraries.
THREADS_OF_SESSION = 64
#: prlimit(1)'s names of limits, by ulimit's letters.
_NAMES = {"d": "data", "n": "nofile", "t": "cpu", "u": "nproc", "v": "as"}
#: The stack of a thread of Python's or of a library's, in MiB.
_STACK_MIB = 8
#: Python's message if no thread can be started.
_NO_THREAD = "can't start new thread"


def require(threads: int = 0) -> None:
    """Raise `HostError` with the limit and its fix if this process cannot have the files, memory or threads.

    ``threads``: the minimum; libraries start more by the number of CPUs.
    """
    threads = max(threads, 8 + 3 * _cpus())
    if not _files():
        raise no_files()
    if not _addresses():
        raise no_addresses()
    if not _data(threads):
        raise no_data(threads)
    if not _threads(threads):
        raise no_threads()


def require_time() -> None:
    """Raise `HostError` if the kernel would end this process after some CPU time, or what it starts.

    What tare starts inherits its limits, and what a daemon starts does not: so soft limits are raised where they can
    be, of CPU time and of the size of files.
    """
    for number in (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
        _, hard = resource.getrlimit(number)
        resource.setrlimit(number, (hard, hard))
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard != resource.RLIM_INFINITY:
        what = f"this process and each that it starts may use only {hard} s of processor time (ulimit -t)"
        raise _too_low(what, resource.RLIMIT_CPU, "t", resource.RLIM_INFINITY)


def explained(error: BaseException) -> HostError | None:
    """Return the error that names the limit by which the system refused something, or None for any other error."""
    if isinstance(error, MemoryError):
        return no_addresses() if _limited(resource.RLIMIT_AS) else None
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return no_threads()
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return no_files()
    return None


def no_files() -> HostError:
    """Return the error for a low limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _too_low(f"this process may have only {soft} open files (ulimit -n)", resource.RLIMIT_NOFILE, "n", 1024)


def no_addresses() -> HostError:
    """Return the error for a low limit of addresses."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    what = f"this process may use only {soft >> 20} MiB of addresses (ulimit -v), and tare needs {_mib()} MiB"
    return _too_low(what, resource.RLIMIT_AS, "v", resource.RLIM_INFINITY)


def no_data(threads: int) -> HostError:
    """Return the error for a low limit of private writable memory."""
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    what = f"this process may have only {soft >> 20} MiB of data (ulimit -d), and tare needs {_data_mib(threads)} MiB"
    return _too_low(what, resource.RLIMIT_DATA, "d", resource.RLIM_INFINITY)


def no_threads() -> HostError:
    """Return the error for no more threads or processes, with the limit that is reached."""
    for file in _pids_limits():
        most, now = host_text.said(file), host_text.said(file.with_name("pids.current"))
        if most.isdigit() and int(most) - int(now or 0) < THREADS_OF_SESSION:
            return HostError(
                f"its control group may have only {most} processes and threads, and has {now} ({file})",
                fix=f"echo max > {shlex.quote(str(file))}",
            )
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    most = "only so many" if soft == resource.RLIM_INFINITY else f"only {soft}"
    what = f"no more processes or threads can be started: this user may have {most} (ulimit -u)"
    return _too_low(what, resource.RLIMIT_NPROC, "u", 4096)


def _files() -> bool:
    opened: list[int] = []
    try:
        source = os.open("/", os.O_RDONLY | os.O_CLOEXEC)
        opened.append(source)
        opened.extend(os.dup(source) for _ in range(FILES))
    except OSError as error:
        return error.errno != errno.EMFILE
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return True


def _addresses() -> bool:
    return not _limited(resource.RLIMIT_AS) or _mappable(_mib(), 0)


def _data(threads: int) -> bool:
    return not _limited(resource.RLIMIT_DATA) or _mappable(_data_mib(threads), mmap.PROT_READ | mmap.PROT_WRITE)


def _mappable(mib: int, protection: int) -> bool:
    try:
        mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=protection).close()
    except (OSError, ValueError):
        return False
    return True


def _threads(count: int) -> bool:
    done = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(count):
            thread = threading.Thread(target=done.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:
        return False
    finally:
        done.set()
        for thread in started:
            thread.join()
    return True


def _mib() -> int:
    """Return the MiB of addresses that tare needs here: libraries start threads by the number of CPUs."""
    return (ADDRESSES >> 20) + 8 * _cpus()


def _data_mib(threads: int) -> int:
    """Return the MiB of private writable memory that tare needs here."""
    return (DATA >> 20) + _STACK_MIB * threads


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


def _limited(number: int) -> bool:
    return resource.getrlimit(number)[0] != resource.RLIM_INFINITY


def _too_low(what: str, number: int, letter: str, value: int) -> HostError:
    """Return the error of a limit, with the fix for the shell that started tare, whose children inherit it."""
    shown = "unlimited" if value == resource.RLIM_INFINITY else str(value)
    _, hard = resource.getrlimit(number)
    flag = f"-S{letter}"
    if hard != resource.RLIM_INFINITY and not 0 <= value <= hard:
        flag = f"-{letter}"
        try:
            resource.setrlimit(number, (value, value))
        except (ValueError, OSError):  # Not even root may do this without the capability sys_resource.
            command = f"prlimit --pid {os.getppid()} --{_NAMES[letter]}={shown}:{shown}"
            return HostError(what, fix=f"as root of the host: {command}")
    return HostError(what, fix=f"ulimit {flag} {shown}")


def _pids_limits() -> Iterator[Path]:
    """Yield the files with the process limits of this process's control groups, innermost first."""
    for line in host_text.said("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in {"", "pids"}:
            continue
        for mount in mounts.table():
            if mount.kind == "cgroup2" if controllers == "" else "pids" in mount.super_options:
                folder = Path(mount.point, os.path.relpath(path, mount.root))
                yield from (above / "pids.max" for above in (folder, *folder.parents) if above != above.parent)
                break
