"""Requests for footprints and surfaces, and the checks that need nothing to be started.

A request is made once, from the command line, and is data. It is carried out here (`tare.footprint.execution.counting`,
`tare.footprint.execution.live`), or travels into a lab and is carried out there by the same function
(`tare.footprint.execution.lab`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tare.campaign.plan.request import DEFAULT_MEMORY, check_seed
from tare.errors import UsageError
from tare.host.network import subnets
from tare.model import Level
from tare.workloads.base import Params

#: As of Anjali, Caraza-Harter and Swift 2020, section 3.3: CPU, network, memory (mmap and munmap), writing of files.
WORKLOADS = ("sysbench-cpu", "iperf3-tcp", "munmap-sweep", "sysbench-fileio-seqwr")
#: Of instructions, where each unit of work is counted by itself: in and out of the kernel, a file, a process, a page.
UNITS = ("call-getpid", "call-read-4k", "call-open", "proc-fork")
#: Repeats where none are asked for: windows on one host, or machines whose instructions are counted.
REPEATS, MACHINES = 3, 5

#: What a user may bring a version of, as platforms call it; the programs that they start themselves.
PROGRAMS = (
    "bwrap", "cloud-hypervisor", "conmon", "containerd", "containerd-shim-runc-v2", "crun", "dockerd", "firecracker",
    "jailer", "lxc-start", "netavark", "podman", "qemu-kvm", "qemu-system-x86_64", "runc", "runsc",
    "systemd-nspawn", "youki",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FootprintRequest:
    """What is to be counted, of any level; empty and None mean the default."""

    platforms: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    level: Level = Level.SYSCALLS
    repeats: int = REPEATS
    idle_s: float = 10.0
    seed: int | None = None
    cpus: tuple[int, ...] = ()
    memory_bytes: int = DEFAULT_MEMORY
    subnet: str | None = None
    params: Mapping[str, Params] = field(default_factory=dict)  # in place of the profile's, by workload
    caches: bool = False  # of instructions: whether a model of caches is asked for each line of memory too

    def check(self) -> None:
        """Raise `UsageError` for what cannot be."""
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
    """How often a level is counted where nobody says."""
    return MACHINES if level is Level.INSTRUCTIONS else REPEATS


def workloads_of(request: FootprintRequest) -> tuple[str, ...]:
    """The workloads that a request asks for, or those of its level."""
    return request.workloads or (UNITS if request.level is Level.INSTRUCTIONS else WORKLOADS)


@dataclass(frozen=True, slots=True)
class SurfaceRequest:
    """Whose surfaces are to be read: of platforms (none named: the usual ones), or of processes that run already."""

    platforms: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    file: Path | None = None  # a campaign's, which gets the surfaces too; the baseline takes part then

    def check(self) -> None:
        """Raise `UsageError` for what cannot be."""
        if self.pids and self.platforms:
            raise UsageError("platforms are started, processes of --pid run already", fix="name platforms, or --pid")
        if self.pids and self.file is not None:
            raise UsageError(
                "a file keeps surfaces of platforms, and --pid has none", fix="leave -o out, or take --json"
            )
