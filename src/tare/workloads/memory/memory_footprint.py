"""What an instance takes of the host's memory: idle, right after its start, and after some work.

The work holds 64 MiB of memory for a moment, and writes and reads a file of 64 MiB in /data: what a platform keeps of
that afterwards (page cache, a guest's memory that is never given back) is its cost above that of an idle instance. Two
figures each: what the host charges to the instance's control group, and the proportional set size (PSS) of its host
processes (proc(5), ``smaps_rollup``). Memory of shared daemons is in neither. The share of the machine's memory is
that of the idle instance's PSS.

A virtual machine's PSS is two figures more: its own memory, which the memory limit bounds, and the rest, which is what
its monitor takes beside it (the monitor's own, emulated devices, translated code).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
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
    metrics = (
        Metric("idle-pss", "MiB", Direction.LOWER, "PSS of its host processes when idle"),
        Metric("idle-group", "MiB", Direction.LOWER, "charged to its control group when idle"),
        Metric("used-pss", "MiB", Direction.LOWER, "PSS after some work"),
        Metric("used-group", "MiB", Direction.LOWER, "charged to its control group after some work"),
        Metric("idle-share", "%", Direction.LOWER, "PSS of its host processes when idle, of all memory of the host"),
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
            "idle-pss": before.pss, "idle-group": before.group, "used-pss": after.pss, "used-group": after.group
        }  # fmt: skip
        for name, value in figures.items():
            if value <= 0:
                raise ParseError(f"{name} is {value} bytes")
        taken = {name: value / MIB for name, value in figures.items()} | {"idle-share": 100 * before.pss / before.host}
        for name, usage in (("idle", before), ("used", after)):
            if usage.guest is not None:
                taken |= {f"{name}-guest": usage.guest / MIB, f"{name}-monitor": (usage.pss - usage.guest) / MIB}
        return taken


WORKLOAD = MemoryFootprint()
