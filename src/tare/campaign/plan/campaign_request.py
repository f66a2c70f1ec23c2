"""A user's request for a campaign, and the checks of it that need no start of anything."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tare.campaign.plan.campaign_plan import BASELINE_REPLICAS, RunProfile, how_long
from tare.errors import UsageError
from tare.host.kernel import cpulist, pinning
from tare.host.network import subnets
from tare.model import Design
from tare.workloads.base import Params, RunWorkload

if TYPE_CHECKING:
    from tare.store import LeftOut

DEFAULT_MEMORY = 1 << 30
MIN_MEMORY = 256 << 20
#: In place of a platform's name: all platforms. Those that do not run here are left out, and the report says why.
ALL = "all"
DUET_CPUS = 2
#: CPUs' worth of time below which the kernel takes no quota (1 ms of each period of 100).
MIN_QUOTA = 0.01
#: The largest integer of SQLite; every random generator takes it as a seed.
MAX_SEED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class CampaignRequest:
    """The user's request; empty values and None mean the default."""

    platforms: Sequence[str] = ()
    workloads: Sequence[str] = ()
    programs: Sequence[RunWorkload] = ()  # the user's own commands (`tare.workloads.own.program`)
    profile: str = "quick"
    blocks: int | None = None
    budget_s: float | None = None
    seed: int | None = None
    cpus: tuple[int, ...] = ()
    memory_bytes: int = DEFAULT_MEMORY
    data_bytes: int | None = None  # size of each instance's own data filesystem; None: a folder of the host's
    cpu_quota: float | None = None  # CPUs' worth of time that each instance may use; None: all of its CPUs'
    subnet: str | None = None
    client: str | None = None  # the machine that the load comes from, ``ssh:[USER@]HOST[:PORT]``; None: this host
    tune: bool = False
    design: Design = Design.BLOCKS
    replicas: int = BASELINE_REPLICAS
    params: Mapping[str, Params] = field(default_factory=dict)  # in place of the profile's, by workload
    margins: Mapping[str, float] = field(default_factory=dict)  # the user's own (`plan.make_jobs`)
    slowed: Sequence[float] = ()  # shares of extra work, with each of which every platform has a copy
    precision: float | None = None  # half-width to reach, a fraction; None: half of each margin; 0: use all of the time
    base: str | None = None  # the workloads' own profile where ``profile`` is a study's (`plan.profiles`)
    length: RunProfile | None = None  # of a study's profile
    scale: str | None = None  # of a study's profile
    second: Sequence[str] = ()  # second baselines beside ``platforms``, in their families alone and within the time
    offered: bool = False  # the platforms come from a profile: one that does not run here is left out
    left_out: Sequence[LeftOut] = ()  # platforms of a study that tare does not have
    in_order: bool = False  # a block's workloads run as they are listed

    def check(self) -> None:
        """Raise `TareError` for a request that cannot be met, whichever platforms run here."""
        self.duration()
        if self.blocks is not None and self.budget_s is not None:
            raise UsageError("--blocks and --time both say how long", fix="give one of them")
        check_resources(self.cpus, self.memory_bytes)
        check_quota(self.cpu_quota, len(self.cpus or usable_cpus()))
        check_seed(self.seed)
        if self.subnet is not None:
            subnets.parse(self.subnet)
        if self.design is Design.DUET and len(self.cpus or usable_cpus()) < DUET_CPUS:
            raise UsageError("a duet plays on two CPUs", fix="give --cpus with two of them, or leave --design duet out")
        if self.design is Design.SEQUENTIAL and self.precision:
            raise UsageError(
                "with one platform after the other, no difference is known until the last has started",
                fix="leave --precision out, or give --design blocks",
            )

    def duration(self) -> RunProfile:
        """The profile's length, unless blocks or a time were asked for. Raises `UsageError`."""
        return how_long(self.profile, self.blocks, self.budget_s, self.length)


def check_resources(cpus: Sequence[int], memory_bytes: int) -> None:
    """Raise `UsageError` for CPUs or memory that this host does not have, and for too little memory for an instance."""
    usable = usable_cpus()
    for cpu in cpus:
        if cpu not in usable:
            problem = f"CPU {cpu} cannot be used here: it is not there, is offline, or is not in this process's cpuset"
            raise UsageError(problem, fix=f"give --cpus out of {cpulist.written(usable)}")
    if memory_bytes < MIN_MEMORY:
        raise UsageError(
            f"{memory_bytes >> 20} MiB are too little for an instance",
            fix=f"give --memory {MIN_MEMORY >> 20} or more",
        )
    check_memory(memory_bytes)


def check_quota(quota: float | None, cpus: int) -> None:
    """Raise `UsageError` for a quota that the kernel does not take, or that is more than the CPUs have."""
    if quota is not None and not MIN_QUOTA <= quota <= cpus:
        problem = f"instances cannot have {quota:g} CPUs' worth of time"
        raise UsageError(problem, fix=f"give --cpu-quota between {MIN_QUOTA:g} and {cpus}")


def check_memory(memory_bytes: int) -> None:
    """Raise `UsageError` for more memory than this host has."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if memory_bytes > most:
        raise UsageError(
            f"{memory_bytes >> 20} MiB are more than this host has", fix=f"give --memory below {most >> 20} MiB"
        )


def check_seed(seed: int | None) -> None:
    """Raise `UsageError` for a seed out of range."""
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise UsageError(f"{seed} is no seed", fix=f"give a whole number from 0 to {MAX_SEED}")


def usable_cpus() -> list[int]:
    """The CPUs of the host that instances may be given."""
    return sorted(pinning.reachable())
