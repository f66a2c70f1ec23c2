"""DBENCH: the file operations of a file server's clients, 1, 2, 4 and 8 at once, each a process (Giallorenzo 2021).

Table 1 of the study has ``-t 180`` with 1, 2, 4 and 8 processes, plain, with ``-F`` (fsync after each write) and with
``-s`` (O_SYNC for all files); on a volume with ``-D``, else in the image's own filesystem. Its figure 6 has the
throughput. A fifth of the time, in whole seconds, is dbench's own warm-up.

`quick` is two seconds, of which dbench rates the first: the throughput is that of the last second which ended before
the time was over. The load file begins with large writes, so that such a figure says little about longer runs: it
serves to try the workload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError, UnsupportedError
from tare.model import Direction, Family, Metric
from tare.workloads.base import (
    UNSUPPORTED_CODE,
    Command,
    Completed,
    Outcome,
    Params,
    RunPlan,
    RunWorkload,
    Surroundings,
)
from tare.workloads.storage import dbench_report

CLIENTS = (1, 2, 4, 8)
LOAD = "/usr/share/dbench/client.txt"
#: By the load file a client has at most 23 MiB in files: for eight, and some room.
ROOM_MIB = 256
#: What a run may take beyond its time: it reads its load file, and removes what its clients made.
GRACE_S = 300.0
#: A folder of every Debian root that all may write to, and that is no tmpfs by custom.
IN_THE_IMAGE = "/var/tmp"  # noqa: S108 (nobody else is in the instance)
#: Below the place, so that nothing else is removed with it.
FOLDER = "tare-dbench"
#: The file on the data volume that gets dbench's output.
OUTPUT = "tare-dbench.out"

#: $1: the folder, $2: how many MiB must be free there.
_PREPARE = f"""\
mkdir -p "$1" || exit {UNSUPPORTED_CODE}
free=$(($(stat -f -c '%a * %S' "$1") / 1048576))
[ "$free" -ge "$2" ] || {{ echo "$1 has $free MiB free, and $2 are needed" >&2; exit {UNSUPPORTED_CODE}; }}
"""
#: dbench's options. Its clients wait for a semaphore, which is removed as soon as it has let them go. On gVisor with
#: one CPU a client may come too late to see that it was let go, finds no semaphore, and gives up: half of the starts
#: end like that, before anything is measured, and then there is another. The other clients end once dbench is reaped;
#: so its output is a file, and not a pipe that they would keep open.
_LATE = "failed to use the barrier semaphore"
STARTS = 12
_RUN = f"""\
for attempt in $(seq {STARTS}); do
    dbench "$@" >{OUTPUT}
    code=$?
    grep -q "{_LATE}" {OUTPUT} || break
    sleep 1
done
cat {OUTPUT}
exit $code
"""


class Dbench(RunWorkload):
    """Parameters: ``time_s`` (at least 2), ``place`` (a folder that an instance may write to)."""

    name = "dbench"
    title = "DBENCH with 1 to 8 clients on the data volume"
    family = Family.STORAGE
    metrics = (
        *(Metric(f"clients-{n}", "MB/s", Direction.HIGHER, f"throughput of {n} at once") for n in CLIENTS),
        *(Metric(f"latency-{n}", "ms", Direction.LOWER, f"longest operation of {n} at once") for n in CLIENTS),
    )
    work_unit = "MB"
    packages = ("dbench", "coreutils")
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 2, "place": "/data"},
        "full": {"time_s": 180, "place": "/data"},
    }
    options: ClassVar[tuple[str, ...]] = ()

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        folder = f"{params['place']}/{FOLDER}"
        common = ("sh", "-c", _RUN, "dbench", "-t", f"{params['time_s']}", "-c", LOAD, "-D", folder, *self.options)
        limit_s = float(params["time_s"]) + GRACE_S
        return RunPlan(
            prepare=(
                Command(("dbench", "--help")),  # fails where it is not installed
                Command(("sh", "-c", _PREPARE, "prepare", folder, f"{ROOM_MIB}")),
            ),
            measures=tuple(Command((*common, f"{clients}"), time_limit_s=limit_s) for clients in CLIENTS),
            cleanup=(Command(("sh", "-c", 'rm -rf "$@"', "remove", OUTPUT, folder), time_limit_s=GRACE_S),),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != len(CLIENTS):
            raise ParseError(f"{len(CLIENTS)} runs of dbench were planned, {len(results)} results came")
        if any(_LATE.encode() in done.stdout for done in results):
            raise UnsupportedError(f"clients of dbench come too late for its semaphore, in each of {STARTS} starts")
        reports = [dbench_report.read(done) for done in results]
        for clients, report in zip(CLIENTS, reports, strict=True):
            settings = (LOAD, params["time_s"], clients, "-s" in self.options)
            if (report.load, report.seconds, report.clients, report.sync) != settings:
                raise ParseError(f"dbench ran something else than was asked: {report}")
        samples = {f"clients-{report.clients}": report.rate for report in reports}
        samples |= {f"latency-{report.clients}": report.latency_ms for report in reports}
        # Its rate is that of the seconds that it counts; the work is that rate over the whole time.
        return Outcome(samples, work=sum(report.rate * report.seconds for report in reports))


def _in_the_image(profiles: Mapping[str, Params]) -> dict[str, Params]:
    return {name: {**params, "place": IN_THE_IMAGE} for name, params in profiles.items()}


class DbenchFsync(Dbench):
    """With a flush of the file after each write."""

    name = "dbench-fsync"
    title = "DBENCH with fsync (-F), 1 to 8 clients on the data volume"
    options = ("-F",)


class DbenchOsync(Dbench):
    """With every write on the disk before it returns."""

    name = "dbench-osync"
    title = "DBENCH with O_SYNC (-s), 1 to 8 clients on the data volume"
    options = ("-s",)


class DbenchRoot(Dbench):
    """In the filesystem that the instance has of the image."""

    name = "dbench-root"
    title = "DBENCH with 1 to 8 clients in the image's filesystem"
    profiles: ClassVar[Mapping[str, Params]] = _in_the_image(Dbench.profiles)


class DbenchFsyncRoot(DbenchFsync):
    """In the filesystem that the instance has of the image."""

    name = "dbench-fsync-root"
    title = "DBENCH with fsync (-F), 1 to 8 clients in the image's filesystem"
    profiles: ClassVar[Mapping[str, Params]] = _in_the_image(Dbench.profiles)


class DbenchOsyncRoot(DbenchOsync):
    """In the filesystem that the instance has of the image."""

    name = "dbench-osync-root"
    title = "DBENCH with O_SYNC (-s), 1 to 8 clients in the image's filesystem"
    profiles: ClassVar[Mapping[str, Params]] = _in_the_image(Dbench.profiles)


WORKLOADS = (Dbench(), DbenchFsync(), DbenchOsync(), DbenchRoot(), DbenchFsyncRoot(), DbenchOsyncRoot())
