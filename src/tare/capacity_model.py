"""The nouns of a fill: what a host showed while ever more instances of one platform ran on it, and why the fill ended.

A fill is one trial of the workload ``capacity``. It is kept beside the trial's figures as the output `FILL`; what is
made of it (how many fit, what to reserve) is computed when a report is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from tare.errors import first_invalid
from tare.records import Line, Strict

#: The workload whose trials are fills, and the output of such a trial that holds the fill.
CAPACITY = "capacity"
FILL = "fill"
#: Before the name of a file that describes a user's application: instances with it in service are added.
FILLED = "fill:"
#: The attachment of a campaign's file that holds the price file.
PRICES = "prices.toml"
#: What helps against a price file that cannot be read.
PRICES_FIX = "write it as docs/examples/prices.toml"

Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Signed = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Amount = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]


class Resource(StrEnum):
    """What a host may run out of."""

    MEMORY = "memory"
    CPU = "cpu"
    TASKS = "tasks"
    FILES = "files"
    BRIDGE_PORTS = "bridge-ports"
    MOUNTS = "mounts"
    TERMINALS = "terminals"
    MEMORY_GROUPS = "memory-groups"
    NEIGHBOURS = "neighbours"
    DISK = "disk"


class Stop(StrEnum):
    """Why a fill ended."""

    QUARTER = "quarter"  # a quarter of the predicted number runs: enough to predict from
    MOST = "most"  # as many run as were asked for at most
    TIME = "time"  # the time of a trial is over
    FULL = "full"  # a resource is used up to the host's reserve
    LIMIT = "limit"  # one of the user's limits is broken
    START = "start"  # an instance did not start


class FillLevel(Strict):
    """The host with so many idle instances, in bytes; of processes, pages that no file gives back."""

    count: Count
    at_s: Amount  # since the fill began
    available: Count  # MemAvailable
    anonymous: Count  # of all processes on the host, and files that lie in memory alone (AnonPages, Shmem)
    slab: Count  # that cannot be reclaimed (SUnreclaim)
    slab_free: Count = 0  # of that, the room of objects that are not in use; 0 where the kernel does not show it
    cpu_lists: Count = 0  # free pages in CPUs' own lists, which MemAvailable does not have; 0 where it is not shown
    page_tables: Count  # of all processes
    stacks: Count  # the kernel's, of all threads (KernelStack)
    per_cpu: Count
    tables: Count  # page tables and the kernel's stacks of the instances' and the daemons' processes alone
    instances: Count  # of the instances' processes
    instances_pss: Count
    instances_group: Count  # charged to their control groups, page cache included
    engine: Count  # of the daemons that all instances share
    harness: Count  # of tare and of the clients that wait for it
    harness_slab: Count  # the kernel's objects that are charged to those clients
    harness_mounts: Count = 0  # later mounts of the host, which the kernel copies into the clients' namespaces
    elsewhere: Count = 0  # the kernel's objects that are charged to groups without an instance or a daemon (cgroup v2)
    groups: Count = 0  # memory control groups of the host, removed ones that still have pages among them; 0: not known
    filesystems: Count = 0  # mounted on the host and in the instances, each once; 0: not known
    window_s: Annotated[float, Field(ge=1e-9, le=1e9)]  # over which CPU time was counted
    cpu_ns: Count  # of all instances
    daemon_cpu_ns: Count
    used: dict[Resource, Count]  # of what is counted in pieces
    starts_ms: list[Amount]  # of the instances that were added
    failed: Count = 0  # starts that failed
    memory_stall: Amount = 0.0  # share of the window in which some task waited for memory (PSI)
    cpu_stall: Amount = 0.0
    working: Count = 0  # instances that were put to work at once, after all were idle
    rates: list[Amount] = Field(default_factory=list)  # by one of these: work a second
    late_ms: list[Amount] = Field(default_factory=list)  # by one of these: how late it began, the median
    work_cpu: Amount = 0.0  # CPUs that these used together


class Fill(Strict):
    """One fill of one platform."""

    memory_total: Count
    memory_reserve: Count  # that stays free for the host
    group_tables: Count = 0  # tables of `TABLE` bytes that each memory control group has before the fill; 0: not known
    nodes: Annotated[int, Field(ge=1, le=1024)] = 1  # NUMA nodes, for each of which a group has its own tables
    budget: Count | None  # the memory that the instances may take; None: all but the reserve
    cpus: Annotated[float, Field(ge=0.001, le=1e6)]  # that instances may use
    active: Annotated[float, Field(ge=0, le=1)] = 0.0  # share of the instances that are at work at any moment
    keep: Annotated[float, Field(ge=0, le=1)] = 0.0  # least share of its work alone that a working one is to have
    most: dict[Resource, Count]  # of what is counted in pieces, how many the host may have
    kept_back: dict[Resource, Count]  # of these, how many stay free for the host
    levels: Annotated[list[FillLevel], Field(min_length=1, max_length=1000)]  # the first without an instance
    own: list[Count]  # by instance at the last level: pages that no file gives back
    kernel: list[Signed]  # by instance: the kernel's memory that is charged to it
    cpu_shares: list[Amount]  # by instance: CPUs that it used in the last window
    held: Count  # the most instances with which every limit held
    quarter: Count | None = None  # instances with which a trial that only predicts would have ended; None: not reached
    stop: Stop
    resource: Resource | None  # that was used up; None: none was
    reason: Line  # of the end, in words

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        """Raise `ValueError` for a fill that no host can have shown, of which nothing could be computed."""
        if not len(self.own) == len(self.kernel) == len(self.cpu_shares):
            raise ValueError("own, kernel and cpu_shares are not of as many instances")
        if len(self.levels) == 1:
            return self
        if not all(level.count for level in self.levels[1:]):
            raise ValueError("a level after the first has no instance")
        if not self.own:
            raise ValueError("no instance of the last level was measured")
        if not any(level.starts_ms for level in self.levels):
            raise ValueError("no start was measured")
        return self


#: Since Linux 6.7 each memory control group has a table for every 64 filesystems that there ever were at once, for each
#: NUMA node: 520 bytes, in an object of 1 KiB (``struct shrinker_info_unit``, mm/shrinker.c).
TABLE, FILESYSTEMS_A_TABLE = 1 << 10, 64


def tables_beyond(fill: Fill, groups: float, filesystems: float) -> float:
    """Bytes by which these tables grow, if a host has so many groups and filesystems, beyond those that they had.

    Every filesystem more makes the tables of every group longer: with the number of instances both grow.
    """
    longer = fill.nodes * filesystems / FILESYSTEMS_A_TABLE - fill.group_tables
    return TABLE * groups * max(0.0, longer) if fill.group_tables else 0.0


def memory_used(before: FillLevel, level: FillLevel) -> int:
    """Sum what the instances of a level take of the host's memory, in bytes: own pages, the engine's, the kernel's.

    ``before``: the level without an instance.
    """
    return level.instances + level.engine - before.engine + kernel_memory(before, level)


def kernel_memory(before: FillLevel, level: FillLevel) -> int:
    """Sum the kernel's part of that: page tables and stacks of these processes, objects, and what each CPU has.

    Of objects that cannot be reclaimed, and of what each CPU has, the growth of the whole host counts, as a namespace
    or a link is charged to nobody; what is charged to clients that wait for tare does not.
    """
    return host_objects(before, level) + level.tables - before.tables


def host_objects(before: FillLevel, level: FillLevel) -> int:
    """Sum the growth of the host's objects in use and of what each CPU has, without what is charged to others' groups.

    What is charged to nobody counts, others' too. Pages of slabs would not do: first the room that ended instances
    have left in them is used up.
    """
    grown = _objects(level) + level.per_cpu - _objects(before) - before.per_cpu
    return grown - _charged_to_others(before, level)


def _objects(level: FillLevel) -> int:
    return level.slab - level.slab_free


def memory_gone(before: FillLevel, level: FillLevel) -> int:
    """How much less is available (MemAvailable), in bytes, without the growth of processes that are no instances.

    Those are others' on this host, and tare's own with its clients. Unused room in the kernel's slabs and free pages in
    CPUs' lists are as available.
    """
    gone = _free(before) - _free(level)
    return gone - (_others(level) - _others(before)) - _charged_to_others(before, level)


def _charged_to_others(before: FillLevel, level: FillLevel) -> int:
    return level.harness_slab + level.harness_mounts + level.elsewhere - before.elsewhere


def _free(level: FillLevel) -> int:
    return level.available + level.slab_free + level.cpu_lists


def _others(level: FillLevel) -> int:
    """Sum what processes have that are neither instances nor daemons: pages, page tables and stacks."""
    everybody = level.anonymous + level.page_tables + level.stacks
    return everybody - level.instances - level.engine - level.tables


def cpus_used(level: FillLevel, active: float) -> float:
    """CPUs that the instances of a level use, daemons included, if a share of them is at work at any moment.

    What one at work uses is as measured at this level, where there may be at least one of them even if the share has
    none yet.
    """
    idle = (level.cpu_ns + level.daemon_cpu_ns) / 1e9 / level.window_s if level.window_s > 0 else 0.0
    return idle + (active * level.count * level.work_cpu / level.working if level.working else 0.0)


def kept(levels: Sequence[FillLevel], level: FillLevel) -> float | None:
    """Return the share of its work alone that a working instance has at a level, or None where none works."""
    alone = next((first.rates for first in levels if first.working == 1 and first.rates), None)
    if not alone or not level.rates or not alone[0]:
        return None
    return sum(level.rates) / len(level.rates) / alone[0]


class BrokenFillError(ValueError):
    """An output that is no fill."""


def read_fill(data: bytes) -> Fill:
    """Read the fill that an output holds. Raises `BrokenFillError` with the first mistake."""
    try:
        return Fill.model_validate_json(data)
    except ValidationError as error:
        raise BrokenFillError(first_invalid(error)) from error
