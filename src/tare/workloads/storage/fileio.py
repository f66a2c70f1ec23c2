"""What sysbench's two sequential file tests share."""

from __future__ import annotations

from collections.abc import Sequence

from tare.errors import HostError, ParseError
from tare.workloads import sysbench
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, Surroundings
from tare.workloads.output import number, only

#: sysbench's default block size, which the study left as it is.
BLOCK_BYTES = 16 * 1024
PREPARE_LIMIT_S = 600.0
MIB = 1 << 20


def plan(mode: str, params: Params, around: Surroundings, *, cold: bool) -> RunPlan:
    """Prepare the files, one timed run, remove them. ``time_s`` 0: exactly one pass over the files."""
    size = int(params["total_mib"]) * MIB
    if around.disk_free_bytes < 2 * size:
        free, needed = around.disk_free_bytes / 2**30, 2 * size / 2**30
        raise HostError(
            f"{free:.1f} GiB are free on the data volume, {needed:.1f} GiB are needed",
            fix="free some space, set TARE_HOME to a larger disk, or use --profile quick",
        )
    base = ("sysbench", "fileio", f"--file-total-size={params['total_mib']}M", f"--file-num={params['files']}")
    time_s = float(params["time_s"])
    length = [f"--time={params['time_s']}", f"--events={0 if time_s else size // BLOCK_BYTES}"]
    return RunPlan(
        prepare=(Command((*base, "prepare"), time_limit_s=PREPARE_LIMIT_S),),
        measures=(Command((*base, f"--file-test-mode={mode}", *length, "run"), time_limit_s=time_s + PREPARE_LIMIT_S),),
        cleanup=(Command((*base, "cleanup"), time_limit_s=PREPARE_LIMIT_S),),
        cold=cold,
    )


def parse(doing: str, which: str, params: Params, results: Sequence[Completed]) -> Outcome:
    """MiB a second of ``which`` ("read" or "written"), checked against the number of requests and the time."""
    text = sysbench.whole_run(results)
    only(rf"^Doing {doing} test$", text, "sysbench")
    only(r"^Block size 16KiB$", text, "sysbench")
    only(rf"^{params['files']} files, [\d.]+[KMG]iB each$", text, "sysbench")
    rates = {name: only(rf"^    {name}, MiB/s: +([\d.]+)$", text, "sysbench")[1] for name in ("read", "written")}
    other = "written" if which == "read" else "read"
    if float(rates[other]) != 0:
        raise ParseError(f"sysbench shows {rates[other]} MiB/s {other} in a test that only has {which}")
    rate = number(rates[which], f"MiB/s {which}")
    requests = "reads" if which == "read" else "writes"
    per_second = number(only(rf"^    {requests}/s: +([\d.]+)$", text, "sysbench")[1], f"{requests}/s")
    sysbench.agree(rate, per_second * BLOCK_BYTES / MIB, f"MiB/s {which}")
    return Outcome({which: rate}, work=rate * sysbench.seconds(text))
