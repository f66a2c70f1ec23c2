"""Requests for footprints and surfaces, with the checks that start nothing.

A request is data, built once from the command line. It is carried out here (`tare.features.kernel.execution.counting`,
`tare.features.kernel.execution.live`), or sent into a lab and carried out there by the same function
(`tare.features.kernel.execution.lab`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tare.campaign.plan.campaign_request import DEFAULT_MEMORY, check_seed
from tare.errors import UsageError
from tare.host.network import subnets
from tare.model import Level
from tare.workloads.base import Params

#: The workloads of Anjali, Caraza-Harter and Swift 2020, section 3.3: CPU, network, memory (mmap and munmap), file
#: writes.
WORKLOADS = ("sysbench-cpu", "iperf3-tcp", "munmap-sweep", "sysbench-fileio-seqwr")
#: Workloads for instructions, whose units are counted singly: kernel entry and exit, a file, a process, a page.
UNITS = ("call-getpid", "call-read-4k", "call-open", "proc-fork")
#: Default repeats: windows on one host, and machines whose instructions are counted.
REPEATS, MACHINES = 3, 5

#: Programs that a user may bring a version of, by their platforms' names: only those that platforms start themselves.
PROGRAMS = (
    "bwrap", "cloud-hypervisor", "conmon", "containerd", "containerd-shim-runc-v2", "crun", "dockerd", "firecracker",
    "jailer", "lxc-start", "netavark", "podman", "qemu-kvm", "qemu-system-x86_64", "runc", "runsc",
    "systemd-nspawn", "youki",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FootprintRequest:
    """Request to count footprints of any level. Empty and None mean the default."""

    platforms: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    level: Level = Level.SYSCALLS
    repeats: int = REPEATS
    idle_s: float = 10.0
    seed: int | None = None
    cpus: tuple[int, ...] = ()
    memory_bytes: int = DEFAULT_MEMORY
    subnet: str | None = None
    params: Mapping[str, Params] = field(default_factory=dict)  # By workload; replaces the profile's.
    caches: bool = False  # For instructions: also look up each memory access in a model of caches.

    def check(self) -> None:
        """Raise `UsageError` for options that are invalid or contradict each other."""
        if self.repeats < 1:
            raise UsageError(f"{self.repeats} repeats cannot be counted", fix="give at least 1; 3 show what is stable")
        if self.idle_s < 0:
            raise UsageError("the idle host cannot be looked at for less than no time", fix="give --idle 10s, or 0")
        if self.caches and self.level is not Level.INSTRUCTIONS:
            raise UsageError("a model of caches sees what an emulator executes", fix="add --level instructions")
        check_seed(self.seed)
        if self.subnet is not None:
            subnets.parse(self.subnet)


def repeats_of(level: Level) -> int:
    """Return the default number of repeats of a level."""
    return MACHINES if level is Level.INSTRUCTIONS else REPEATS


def workloads_of(request: FootprintRequest) -> tuple[str, ...]:
    """Return the workloads that a request names, or the default ones of its level."""
    return request.workloads or (UNITS if request.level is Level.INSTRUCTIONS else WORKLOADS)


@dataclass(frozen=True, slots=True)
class SurfaceRequest:
    """Request to read surfaces of platforms (default: the usual ones) or of running processes."""

    platforms: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    file: Path | None = None  # A campaign file to store the surfaces in; the baseline then takes part.

    def check(self) -> None:
        """Raise `UsageError` for options that are invalid or contradict each other."""
        if self.pids and self.platforms:
            raise UsageError("platforms are started, processes of --pid run already", fix="name platforms, or --pid")
        if self.pids and self.file is not None:
            raise UsageError(
                "a file keeps surfaces of platforms, and --pid has none", fix="leave -o out, or take --json"
            )
