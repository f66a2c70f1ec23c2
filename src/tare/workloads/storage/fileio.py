"""Code of the workloads of sysbench fileio: 128 files, 16 KiB a request, synchronous, fsync of all every 100 writes.

These are sysbench's defaults, as Kärnä 2021 used them (5.1.4: 5 GB in 128 files for 30 seconds); they are
given all the same, so that another version of sysbench cannot change them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tare.errors import HostError, ParseError
from tare.workloads import sysbench
from tare.workloads.base import Command, Completed, Drop, Params, RunPlan, Surroundings
from tare.workloads.output import agree, positive
from tare.workloads.sysbench import NUMBER

FILES = 128
BLOCK_KIB = 16
#: fsync of every file after so many writes.
FSYNC_FREQUENCY = 100
#: Slowest disk that is waited for while the files are made.
SLOWEST_MIB_S = 10.0

_OPTIONS = (
    r"Extra file open flags: \(none\)",
    rf"{FILES} files, {NUMBER}(?:[KM]iB|GiB) each",
    rf"(?P<total>{NUMBER})(?P<unit>[MG])iB total file size",
    rf"Block size {BLOCK_KIB}KiB",
    rf"Periodic FSYNC enabled, calling fsync\(\) each {FSYNC_FREQUENCY} requests\.",
    r"Calling fsync\(\) at the end of test, Enabled\.",
    r"Using synchronous I/O mode",
)
_FIGURES = (
    r"File operations:",
    rf"reads/s: +(?P<reads>{NUMBER})",
    rf"writes/s: +(?P<writes>{NUMBER})",
    rf"fsyncs/s: +(?P<fsyncs>{NUMBER})",
    r"Throughput:",
    rf"read, MiB/s: +(?P<read>{NUMBER})",
    rf"written, MiB/s: +(?P<written>{NUMBER})",
)


def total_mib(params: Params, around: Surroundings) -> int:
    """Size of all files together: ``total_mib``, halved until twice that is free, but at least ``least_mib``.

    In halves, so that the size stays the same over a campaign unless the disk really fills up. Raises `HostError`.
    """
    total, least = int(params["total_mib"]), int(params["least_mib"])
    free = around.disk_free_bytes // 2**20
    while total > least and free < 2 * total:
        total //= 2
    if total < least or free < 2 * total:
        raise HostError(
            f"files of {least} MiB need {2 * least} MiB free on the data volume, which has {free}",
            fix="free disk space, put TARE_HOME on a larger disk, or use the quick profile",
        )
    return total


def plan(mode: str, params: Params, around: Surroundings, *, syncs: bool = False) -> RunPlan:
    """Make the files, write them back and drop them from the caches, run, remove them.

    ``passes`` is how often the files are gone through at most; 0 is as often as ``time_s`` allows. ``syncs``: the mode
    writes, and so calls fsync, which sysbench counts as requests; else it reads, and the files are cold for the guest
    and for the host.
    """
    total = total_mib(params, around)
    files = ("sysbench", "fileio", f"--file-num={FILES}", f"--file-total-size={total}M")
    requests = int(params["passes"]) * total * 1024 // BLOCK_KIB
    if syncs:
        requests += requests // FSYNC_FREQUENCY * FILES

    def run(events: int) -> Command:
        argv = (
            *files,
            f"--file-test-mode={mode}",
            f"--file-block-size={BLOCK_KIB}K",
            "--file-io-mode=sync",
            f"--file-fsync-freq={FSYNC_FREQUENCY}",
            "--file-fsync-end=on",
            "--threads=1",
            f"--events={events}",
            f"--time={params['time_s']}",
            "run",
        )
        return Command(argv, time_limit_s=float(params["time_s"]) + sysbench.GRACE_S)

    return RunPlan(
        prepare=(Command((*files, "prepare"), time_limit_s=sysbench.GRACE_S + total / SLOWEST_MIB_S),),
        starts=(run(1),),
        measures=(run(requests),),
        cleanup=(Command((*files, "cleanup")),),
        drop=Drop.HOST if syncs else Drop.BOTH,
        # Of several passes nobody knows which files the cache still has at the end.
        fetched=tuple(f"test_file.{number}" for number in range(FILES)) if params["passes"] == 1 and not syncs else (),
    )


def read(params: Params, results: Sequence[Completed], test: str) -> sysbench.SysbenchReport:
    """Read a run. ``test`` is sysbench's name of the mode. Raises `ParseError`."""
    report = sysbench.read(results, 1, (*_OPTIONS, rf"Doing {test} test"), _FIGURES)
    total = float(report.fields["total"]) * (1024 if report.fields["unit"] == "G" else 1)
    sysbench.require_rate(report, "requests", _requests(report), _rate(report))
    if not float(params["least_mib"]) <= total <= float(params["total_mib"]):
        raise ParseError(f"sysbench used files of {total:g} MiB, {params['total_mib']} were asked for")
    return report


def _rate(report: sysbench.SysbenchReport) -> float:
    return sum(float(report.fields[name]) for name in ("reads", "writes", "fsyncs"))


def _requests(report: sysbench.SysbenchReport) -> int:
    """Return the number of requests: one an event, and a last fsync of each file if anything was written."""
    return report.events + (FILES if float(report.fields["writes"]) > 0 else 0)


def written_mib(report: sysbench.SysbenchReport) -> float:
    """Return what was written: the writes' share of the requests."""
    return _requests(report) * float(report.fields["writes"]) / _rate(report) * BLOCK_KIB / 1024


def throughput(report: sysbench.SysbenchReport, way: str, idle_way: str) -> float:
    """MiB/s in the direction ``way`` (read or written); nothing may move in ``idle_way``. Raises `ParseError`."""
    rates = {"read": "reads", "written": "writes"}
    moved = positive("sysbench", f"MiB/s {way}", report.fields[way])
    agree("sysbench", f"MiB/s {way}", moved, float(report.fields[rates[way]]) * BLOCK_KIB / 1024)
    if float(report.fields[idle_way]) != 0 or float(report.fields[rates[idle_way]]) != 0:
        raise ParseError(f"sysbench has also {idle_way} {report.fields[idle_way]} MiB/s")
    return moved
