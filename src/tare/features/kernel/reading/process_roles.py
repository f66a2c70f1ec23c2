"""Classification of an instance's processes: their role, and if they are on the tenant's side.

A process counts if it runs the tenant's instructions, or serves their requests in place of a kernel or a machine:

- If any process of the instance is in a pid namespace other than the host's, all processes in such a namespace count: a
  container's processes, gVisor's sentry, gofer and stubs. Helpers in the host's pid namespace created the sandbox,
  watch it, or carry its streams (shim, conmon, a runtime in the foreground, a proxy of published ports). No request of
  the tenant's to a kernel ends in a helper, so helpers are shown but do not count.
- Devices in user space (`DEVICES`), such as a network stack for a rootless container, count in any namespace: they
  handle the tenant's packets or requests as a kernel would.
- If no process is in a pid namespace of its own, all count: a chroot's program, a virtual machine's monitor.
- The kernel's own threads never count, because they make no system calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from tare.features.kernel.reading import process_rights
from tare.host.facts.posture import DEVICES
from tare.host.kernel import process_table

SENTRY, GOFER = "runsc-sandbox", "runsc-gofer"
_MONITORS = ("qemu-system-", "qemu-kvm", "firecracker", "cloud-hypervisor", "linux.uml")


@dataclass(frozen=True, slots=True)
class InstanceProcess:
    """One process of an instance."""

    pid: int
    program: str
    role: str
    counted: bool


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """The facts about a process that decide its side."""

    program: str  # The last part of its first argument, or its name if there are no arguments.
    parent: int
    own_pids: bool  # Is in a pid namespace other than the host's.
    kernels: bool  # Is a thread of the kernel's.


def sides(pids: Sequence[int]) -> list[InstanceProcess]:
    """Return the processes that are still alive, those that count first."""
    return judge({pid: process for pid in pids if (process := _facts(pid)) is not None})


def judge(processes: Mapping[int, ProcessFacts]) -> list[InstanceProcess]:
    """Return each process with its role and if it counts; those that count first."""
    apart = any(process.own_pids for process in processes.values())
    judged = [_side(pid, processes, apart=apart) for pid in processes]
    return sorted(judged, key=lambda side: (not side.counted, side.pid))


def _side(pid: int, processes: Mapping[int, ProcessFacts], *, apart: bool) -> InstanceProcess:
    process = processes[pid]
    if process.kernels:
        return InstanceProcess(pid, process.program, "kernel thread", counted=False)
    if process.program in DEVICES:
        return InstanceProcess(pid, process.program, "device", counted=True)
    if apart and not process.own_pids:
        return InstanceProcess(pid, process.program, "outside", counted=False)
    return InstanceProcess(pid, process.program, _role(process, processes), counted=True)


def _role(process: ProcessFacts, processes: Mapping[int, ProcessFacts]) -> str:
    if any(above.program == SENTRY for above in _ancestors(process, processes)):
        return "stub"  # A stub of gVisor's runs the tenant's own instructions, and its calls go to the sentry.
    if process.program in (SENTRY, GOFER):
        return "sentry" if process.program == SENTRY else "gofer"
    return "monitor" if process.program.startswith(_MONITORS) else "sandboxed"


def _ancestors(process: ProcessFacts, processes: Mapping[int, ProcessFacts]) -> Iterator[ProcessFacts]:
    met = set()  # Guards against a circle: process ids are reused, and the processes were read at different moments.
    while process.parent in processes and process.parent not in met:
        met.add(process.parent)
        process = processes[process.parent]
        yield process


def _facts(pid: int) -> ProcessFacts | None:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        stat = process_table.stat(pid)
        if stat is None or stat.ended:
            return None
        called = process_table.argv(pid)[:1]
        program = PurePath(called[0]).name if called and called[0] else process_rights.identity(pid, pid).name
        own_pids = "pid" in process_rights.foreign_namespaces(pid, pid)
        return ProcessFacts(program, stat.parent, own_pids, stat.kernels)
    return None
