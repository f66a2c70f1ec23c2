"""The host's memory that an instance takes: idle, right after its start, and after some work.

The headline, ``idle-own``, is what one more instance costs: memory that no other has and no file gives back (anonymous
pages and files in memory alone, by its processes' smaps_rollup and its control group's memory.stat), and what the
kernel has for it. Beside it the proportional set size (PSS) of its host processes, in which a program's pages count
too, shared among all who run it; and all that is charged to its control group, page cache included.

A client that waits only to hand the agent's streams on (`runc run`, `podman start --attach`) is in none of them: who
starts instances detached has none. It is ``idle-client``. The daemons that all instances share are ``daemons``, once a
host.

The work holds 64 MiB of memory for a moment, and writes and reads a file of 64 MiB in /data: what a platform keeps of
that afterwards (page cache, a guest's memory that is never given back) is its cost above that of an idle instance. The
share of the machine's memory is that of ``idle-own``.

A virtual machine's PSS is two figures more: its own memory, which the memory limit bounds, and the rest, which is what
its monitor takes beside it (the monitor's own, emulated devices, translated code).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import DAEMONS_MEMORY, Direction, Family, Metric
from tare.workloads.base import Command, Completed, MemoryUsage, MemoryWorkload, Outcome, Params, RunPlan, Surroundings

MIB = 2**20
#: An agent that has just answered, and its guest's kernel, still free memory.
SETTLE_S = 0.3
LIMIT_S = 120.0
#: Its argument is an amount as head(1) and tail(1) take it.
_WORK = 'head -c "$1" /dev/zero | tail -c "$1" | tee footprint | wc -c && wc -c <footprint && rm footprint'


class MemoryFootprint(MemoryWorkload):
    """Parameter: ``work_mib``, of memory and of file each."""

    name = "memory-footprint"
    title = "the host's memory that an instance takes, idle and after some work"
    family = Family.MEMORY
    by_default = True
    revision = 2
    metrics = (
        Metric("idle-own", "MiB", Direction.LOWER, "what one more idle instance costs: its own pages and the kernel's"),
        Metric("idle-pss", "MiB", Direction.LOWER, "PSS of its host processes when idle", headline=True),
        Metric("idle-group", "MiB", Direction.LOWER, "charged to its control group when idle"),
        Metric("used-own", "MiB", Direction.LOWER, "its own pages and the kernel's after some work"),
        Metric("used-pss", "MiB", Direction.LOWER, "PSS after some work"),
        Metric("used-group", "MiB", Direction.LOWER, "charged to its control group after some work"),
        Metric("idle-share", "%", Direction.LOWER, "what one more idle instance costs, of all memory of the host"),
        Metric("idle-client", "MiB", Direction.LOWER, "PSS of a client that waits, which is in no other figure"),
        Metric(DAEMONS_MEMORY, "MiB", Direction.LOWER, "PSS of the daemons that all instances share, once a host"),
        Metric("idle-guest", "MiB", Direction.LOWER, "the part of the idle PSS that is a machine's own memory"),
        Metric("idle-monitor", "MiB", Direction.LOWER, "the rest of it, where there is such: the monitor's overhead"),
        Metric("used-guest", "MiB", Direction.LOWER, "the part of the PSS after some work that is a machine's memory"),
        Metric("used-monitor", "MiB", Direction.LOWER, "the rest of it, where there is such"),
    )
    work_unit = "run"
    packages = ("coreutils",)
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"work_mib": 64}, "full": {"work_mib": 64}}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        settle = Command(("sleep", str(SETTLE_S)))
        # A pause before each measurement: pages that are just being freed would make it inaccurate.
        measures = (Command(("sh", "-c", _WORK, "work", f"{params['work_mib']}m"), time_limit_s=LIMIT_S), settle)
        return RunPlan(prepare=(settle,), measures=measures)

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        work = results[0]
        expected_bytes = int(params["work_mib"]) * MIB
        if work.exit_code != 0 or work.stdout.split() != [str(expected_bytes).encode()] * 2:
            output = (work.stderr or work.stdout).decode(errors="replace").strip()
            raise ParseError(f"the work of {expected_bytes} bytes was not done: {output[-300:] or 'no output'}")
        return Outcome({}, work=0)

    def measure_memory(self, before: MemoryUsage, after: MemoryUsage) -> dict[str, float]:
        figures = {
            f"{when}-{name}": value
            for when, usage in (("idle", before), ("used", after))
            for name, value in (("own", usage.own), ("pss", usage.pss), ("group", usage.group))
        }
        for name, value in figures.items():
            if value <= 0:
                raise ParseError(f"{name} is {value} bytes")
        besides = {"idle-client": before.client, DAEMONS_MEMORY: before.daemons}
        figures |= {name: value for name, value in besides.items() if value is not None}
        taken = {name: value / MIB for name, value in figures.items()} | {"idle-share": 100 * before.own / before.host}
        for name, usage in (("idle", before), ("used", after)):
            if usage.guest is not None:
                taken |= {f"{name}-guest": usage.guest / MIB, f"{name}-monitor": (usage.pss - usage.guest) / MIB}
        return taken


WORKLOAD = MemoryFootprint()
