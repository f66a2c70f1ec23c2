"""Which processes of an instance are on the tenant's side, and what each is.

Counted is what runs the tenant's instructions, or serves what these ask for in a kernel's or a machine's stead:

- Where any process of the instance is in a pid namespace other than the host's, all that are in one: a container's
  processes, gVisor's sentry, gofer and stubs. What stands in the host's pid namespace beside them made the sandbox,
  watches it, or carries its streams (shim, conmon, a runtime in the foreground, a proxy of published ports): no request
  of the tenant's to a kernel ends there, and it is shown, and not counted.
- But for devices in user space (`DEVICES`), such as a network stack for a container without root: they take the
  tenant's packets or requests as a kernel would, and count wherever they are.
- Where none is in a pid namespace of its own, all: a chroot's program, a virtual machine's monitor.
- Never the kernel's own threads, which call nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from tare.footprint.kernel import rights
from tare.host.kernel import process_table

#: Programs that are a tenant's device, or its network.
DEVICES = frozenset({"passt", "pasta", "pasta.avx2", "passt.avx2", "slirp4netns", "swtpm", "vhost-device", "virtiofsd"})
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
    """A process, as far as its side depends on it."""

    program: str  # what it calls itself: the last part of its first argument, else its name
    parent: int
    own_pids: bool  # whether it is in a pid namespace other than the host's
    kernels: bool  # a thread of the kernel's


def sides(pids: Sequence[int]) -> list[InstanceProcess]:
    """The processes that still live, those that count first."""
    return judge({pid: process for pid in pids if (process := _facts(pid)) is not None})


def judge(processes: Mapping[int, ProcessFacts]) -> list[InstanceProcess]:
    """The role of each process, and whether it counts; those that count first."""
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
        return "stub"  # gVisor's: the tenant's own instructions run in it, and its calls go to the sentry
    if process.program in (SENTRY, GOFER):
        return "sentry" if process.program == SENTRY else "gofer"
    return "monitor" if process.program.startswith(_MONITORS) else "sandboxed"


def _ancestors(process: ProcessFacts, processes: Mapping[int, ProcessFacts]) -> Iterator[ProcessFacts]:
    met = set()  # ids are used again: what was seen at different moments may lead in a circle
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
        program = PurePath(called[0]).name if called and called[0] else rights.identity(pid, pid).name
        own_pids = "pid" in rights.foreign_namespaces(pid, pid)
        return ProcessFacts(program, stat.parent, own_pids, stat.kernels)
    return None
