"""gzip on 1 MiB of text: a small program whole, from its start to its end, of next to no system calls.

As one of the fixed programs whose instructions are counted (docs/instructions.md); by time it is over in some 50 ms.
None of the studies that tare starts from has it: they compress with 7-Zip or by the library alone (`hardinfo-zlib`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, islice
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import read_lines, text_of

FILE = "/data/tare-gzip"
LIMIT_S = 600.0
#: What gzip prints of the text below, of whatever length from 1 MiB on: how much smaller it became, in per cent.
SMALLER = range(70, 80)


class Gzip(RunWorkload):
    """`gzip -6`. Parameters: ``mib`` of text, written before; runs: ``rounds``."""

    name = "gzip"
    title = "gzip on a file of text"
    family = Family.CPU
    metrics = (Metric("rate", "MiB/s", Direction.HIGHER, "text that is compressed, gzip's start in it"),)
    work_unit = "MiB"
    packages = ("coreutils", "gzip")
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"mib": 1, "rounds": 4}, "full": {"mib": 64, "rounds": 4}}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        """Return commands that keep the file and overwrite the result of the run before."""
        write = ("sh", "-c", 'cat >"$0"', FILE)
        return RunPlan(
            prepare=(Command(write, stdin=text(int(params["mib"]))),),
            measures=(Command(("gzip", "-6nkfv", FILE), env={"LC_ALL": "C"}, time_limit_s=LIMIT_S),),
            cleanup=(Command(("rm", "-f", FILE, f"{FILE}.gz")),),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        """Return the rate by tare's own clock: gzip tells no time. Raises `ParseError`."""
        if len(results) != 1:
            raise ParseError(f"one run of gzip was planned, {len(results)} results came")
        printed = text_of(results[0], "stderr")
        fields = read_lines("gzip", printed, (rf"{FILE}:\s+(?P<smaller>\d+)\.\d% -- created {FILE}\.gz",))
        if int(fields["smaller"]) not in SMALLER:
            raise ParseError(f"gzip made the text {fields['smaller']} % smaller: it was another one")
        mib = int(params["mib"])
        return Outcome({"rate": mib / (results[0].wall_ns / 1e9)}, work=mib)


def text(mib: int) -> bytes:
    """Lines with a number and its square, so many MiB of them; the same bytes each time."""
    size = mib << 20
    lines = (f"{number} squared is {number * number}\n" for number in count())
    written = bytearray()
    while len(written) < size:
        written += "".join(islice(lines, 1 << 14)).encode()
    return bytes(written[:size])


WORKLOAD = Gzip()
