"""fio: requests of 4 KiB at random places of one file, one at a time or 32 at once: how long, and how many a second.

With direct I/O every request goes past the page cache of whoever makes it: what is measured is the way to the disk. A
filesystem that refuses O_DIRECT has an unsupported row; so has a platform that takes the flag and goes through the
host's page cache all the same, whose figures would be the memory's. Below a virtual disk the host may cache what the
guest does not (`Platform.disk_cache` says so).

The buffered variants go through the page cache, which holds the file: the figure is the cost of reaching it, and every
platform has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, Drop, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.storage import fio

FILE = "fio-random"
#: The file is at most the memory limit divided by this, so that a guest's page cache is sure to hold it.
CACHED_SHARE = 4


class FioRandread(RunWorkload):
    """Parameters: ``size_mib``, ``least_mib``, ``time_s``, ``iodepth`` (requests under way at once), ``direct``."""

    name = "fio-randread"
    title = "fio: random read of 4 KiB, direct"
    family = Family.STORAGE
    metrics = (
        Metric("iops", "IO/s", Direction.HIGHER, "requests a second"),
        Metric("p50", "µs", Direction.LOWER, "median latency of a request, in a closed loop"),
        Metric("p99", "µs", Direction.LOWER, "99 % of the requests take at most so long, in a closed loop"),
        Metric("p99-9", "µs", Direction.LOWER, "99.9 % of the requests take at most so long, in a closed loop"),
    )
    work_unit = "request"
    packages = fio.PACKAGES
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"size_mib": 128, "least_mib": 64, "time_s": 2, "iodepth": 1, "direct": True},
        "full": {"size_mib": 1024, "least_mib": 1024, "time_s": 30, "iodepth": 1, "direct": True},
    }
    way: ClassVar[fio.Way] = "read"

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        size = fio.disk_mib(int(params["size_mib"]), int(params["least_mib"]), around)
        direct = bool(params["direct"])
        if not direct:
            room = around.memory_bytes // 2**20 // CACHED_SHARE
            problem = f"is more than a quarter of the memory limit, which is {around.memory_bytes >> 20} MiB"
            size = fio.fitting_mib(size, int(params["least_mib"]), room, problem, "give instances more (--memory)")
        options: dict[str, str | int] = {
            "filename": FILE,
            "size": f"{size}m",
            **self._asked(params),
            "time_based": 1,
            "norandommap": 1,
        }
        measure = Command(fio.argv("random", options), time_limit_s=float(params["time_s"]) + fio.GRACE_S)
        return RunPlan(
            prepare=(fio.layout(FILE, size), *(() if direct else (fio.warm(FILE),))),
            measures=(measure,),
            cleanup=(fio.remove(FILE),),
            drop=Drop.HOST if direct else Drop.NONE,  # pages that are still there would be looked up, and written back
            uncached=(FILE,) if direct else (),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 1:
            raise ParseError(f"one run of fio was planned, {len(results)} results came")
        figures = fio.read(results[0], self.way, self._asked(params))
        if figures.runtime < float(params["time_s"]) * 990:
            raise ParseError(f"fio ended after {figures.runtime} ms, {params['time_s']} s were asked for")
        names = (metric.name for metric in self.metrics[1:])
        latencies = (figures.lat_ns.percentile[percentile] / 1000 for percentile in fio.PERCENTILES)
        rate = figures.total_ios * 1000 / figures.runtime
        return Outcome({"iops": rate, **dict(zip(names, latencies, strict=True))}, work=figures.total_ios)

    def _asked(self, params: Params) -> dict[str, str]:
        depth = int(params["iodepth"])
        return {
            "rw": f"rand{self.way}",
            "bs": "4k",
            "ioengine": "psync" if depth == 1 else "libaio",
            "iodepth": str(depth),
            "direct": str(int(bool(params["direct"]))),
            "runtime": f"{params['time_s']}",
        }


class FioRandwrite(FioRandread):
    """As `fio-randread`, but written, over what is there: no block is allocated meanwhile."""

    name = "fio-randwrite"
    title = "fio: random write of 4 KiB, direct"
    way = "write"


def _deep(profiles: Mapping[str, Params]) -> dict[str, Params]:
    """Return the same with 32 requests at once: the throughput of the disk and of the way to it."""
    return {name: {**params, "iodepth": 32} for name, params in profiles.items()}


class FioRandreadDeep(FioRandread):
    """As `fio-randread`, with many requests at once."""

    name = "fio-randread-32"
    title = "fio: random read of 4 KiB, direct, 32 at once"
    profiles: ClassVar[Mapping[str, Params]] = _deep(FioRandread.profiles)


class FioRandwriteDeep(FioRandwrite):
    """As `fio-randwrite`, with many requests at once."""

    name = "fio-randwrite-32"
    title = "fio: random write of 4 KiB, direct, 32 at once"
    profiles: ClassVar[Mapping[str, Params]] = _deep(FioRandwrite.profiles)


def _buffered(profiles: Mapping[str, Params]) -> dict[str, Params]:
    """Return the same with a file that page caches hold, whose size may be smaller for it."""
    return {name: {**params, "least_mib": 32, "direct": False} for name, params in profiles.items()}


class FioRandreadBuffered(FioRandread):
    """As `fio-randread`, out of the page cache."""

    name = "fio-randread-buffered"
    title = "fio: random read of 4 KiB out of the page cache"
    profiles: ClassVar[Mapping[str, Params]] = _buffered(FioRandread.profiles)


class FioRandwriteBuffered(FioRandwrite):
    """As `fio-randwrite`, into the page cache."""

    name = "fio-randwrite-buffered"
    title = "fio: random write of 4 KiB into the page cache"
    profiles: ClassVar[Mapping[str, Params]] = _buffered(FioRandwrite.profiles)


WORKLOADS = (
    FioRandread(),
    FioRandwrite(),
    FioRandreadDeep(),
    FioRandwriteDeep(),
    FioRandreadBuffered(),
    FioRandwriteBuffered(),
)
