"""How many read and write system calls a second `dd` does on blocks of one byte: the price of the system call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import positive, read_lines, text_of


class DdSyscalls(RunWorkload):
    """One run of `dd`. Parameters: ``count``, the blocks that are copied; each takes a read and a write."""

    name = "dd-syscalls"
    title = "dd: one-byte reads of /dev/zero and writes to /dev/null"
    family = Family.CPU
    metrics = (Metric("syscalls-per-second", "calls/s", Direction.HIGHER, "system calls a second"),)
    work_unit = "call"
    packages = ("coreutils",)
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"count": 200_000}, "full": {"count": 2_000_000}}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        argv = ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", f"count={params['count']}")
        # dd speaks the user's language; the parser reads English.
        return RunPlan(measures=(Command(argv, env={"LC_ALL": "C"}, time_limit_s=120.0),))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        fields = read_lines(
            "dd",
            text_of(results[0], "stderr"),
            (
                r"(?P<read>\d+)\+0 records in",
                r"(?P<written>\d+)\+0 records out",
                r"(?P<bytes>\d+) bytes \([^)]*\) copied, (?P<seconds>[\d.e-]+) s, [\d.]+ \w+/s",
            ),
        )
        if not fields["read"] == fields["written"] == fields["bytes"] == str(params["count"]):
            raise ParseError(f"dd copied {fields['bytes']} bytes, not {params['count']}")
        calls = 2 * int(fields["bytes"])
        return Outcome(
            {"syscalls-per-second": calls / positive("dd", "a time", fields["seconds"])},
            work=calls,
        )


WORKLOAD = DdSyscalls()
