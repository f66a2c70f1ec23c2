"""Sequential read and write of one file by request size (Anjali 2020, 7.2, figures 19 and 20: a file of 1 GB).

A write makes the file, goes through it once, and flushes it to the disk; the flush is in the time. A read goes through
it once after page caches were dropped: the guest's and the host's; or one of them, as two of the study's variants of
Firecracker; or none. A platform that shares the host's kernel has its pages in the host's page cache alone: there these
variants are the same. A file that is read is at most a quarter of the memory limit, so that a cache that is not dropped
really holds it, in the guest and on the host (the study's 1 GB: `--memory 4096`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, Drop, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import positive
from tare.workloads.storage import fio

if TYPE_CHECKING:
    from tare.workloads.fio_report import Figures

FILE = "seq-sizes"
SIZES = ("4k", "16k", "64k", "256k", "1m")
#: The file is at most the memory limit divided by this, so that a guest's page cache is sure to hold it.
CACHED_SHARE = 4
#: fio's two clocks: the run's, in ms and rounded up, and the sum over the requests.
CLOCK_S = 0.002


class _SeqSizes(RunWorkload):
    """A run of fio a size. Parameters: ``size_mib``, ``least_mib``, ``drop`` (whose caches before each run)."""

    family = Family.STORAGE
    work_unit = "MiB"
    packages = fio.PACKAGES
    way: ClassVar[fio.Way]

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != len(SIZES):
            raise ParseError(f"{len(SIZES)} runs of fio were planned, {len(results)} results came")
        samples: dict[str, float] = {}
        moved: set[int] = set()
        for size, done in zip(SIZES, results, strict=True):
            figures = fio.read(done, self.way, {**self._asked(), "bs": size})
            moved.add(figures.io_bytes)
            samples[f"{self.way}-{size}"] = figures.io_bytes / 2**20 / self._seconds(figures)
        least, most = (int(params[key]) * 2**20 for key in ("least_mib", "size_mib"))
        if len(moved) != 1 or not least <= min(moved) <= most:
            raise ParseError(f"fio moved {', '.join(str(total >> 20) for total in sorted(moved))} MiB a run")
        return Outcome(samples, work=len(SIZES) * moved.pop() / 2**20)

    def _asked(self) -> dict[str, str]:
        """Return the options that fio must report, besides the size of a request."""
        return {"rw": self.way}

    @abstractmethod
    def _seconds(self, figures: Figures) -> float:
        """Return the time that the throughput is computed with, in s."""


class SeqReadSizes(_SeqSizes):
    """The time is that in the reads, which fio has in ns: out of memory a run takes few of its clock's milliseconds."""

    name = "seq-read-sizes"
    title = "fio: sequential read by request size, all caches dropped"
    metrics = tuple(
        Metric(f"read-{size}", "MiB/s", Direction.HIGHER, f"data read a second, {size} a request") for size in SIZES
    )
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"size_mib": 128, "least_mib": 32, "drop": "both"},
        "full": {"size_mib": 1024, "least_mib": 32, "drop": "both"},
    }
    way = "read"

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        least = int(params["least_mib"])
        room = around.memory_bytes // 2**20 // CACHED_SHARE
        problem = f"is more than a quarter of the memory limit, which is {around.memory_bytes >> 20} MiB"
        size = fio.disk_mib(int(params["size_mib"]), least, around)
        size = fio.fitting_mib(size, least, room, problem, "give instances more (--memory)")
        options = {"filename": FILE, "size": f"{size}m", "ioengine": "psync", **self._asked()}
        return RunPlan(
            prepare=(fio.layout(FILE, size), fio.warm(FILE)),
            measures=tuple(
                Command(fio.argv("read", {**options, "bs": request}), time_limit_s=fio.time_limit_s(size))
                for request in SIZES
            ),
            cleanup=(fio.remove(FILE),),
            drop=Drop(str(params["drop"])),
            fetched=(FILE,),
        )

    def _seconds(self, figures: Figures) -> float:
        busy = positive("fio", "a time in requests", figures.busy_s)
        if busy > figures.runtime / 1000 + CLOCK_S:
            raise ParseError(f"fio was {busy:g} s in requests in a run of {figures.runtime} ms")
        return busy


def _dropping(drop: Drop) -> dict[str, Params]:
    return {name: {**params, "drop": drop.value} for name, params in SeqReadSizes.profiles.items()}


class SeqReadSizesGuest(SeqReadSizes):
    """Out of the host's cache, where a guest has one of its own."""

    name = "seq-read-sizes-guest"
    title = "fio: sequential read by request size, the guest's cache dropped"
    profiles: ClassVar[Mapping[str, Params]] = _dropping(Drop.GUEST)


class SeqReadSizesHost(SeqReadSizes):
    """Out of the guest's cache, where it has one of its own."""

    name = "seq-read-sizes-host"
    title = "fio: sequential read by request size, the host's cache dropped"
    profiles: ClassVar[Mapping[str, Params]] = _dropping(Drop.HOST)


class SeqReadSizesWarm(SeqReadSizes):
    """Out of the guest's cache, or of the host's where it has none of its own."""

    name = "seq-read-sizes-warm"
    title = "fio: sequential read by request size, no cache dropped"
    profiles: ClassVar[Mapping[str, Params]] = _dropping(Drop.NONE)


class SeqWriteSizes(_SeqSizes):
    """The time is the run's, which has the flush in it."""

    name = "seq-write-sizes"
    title = "fio: making a file by request size, flushed at the end"
    metrics = tuple(
        Metric(f"write-{size}", "MiB/s", Direction.HIGHER, f"data written a second, {size} a request") for size in SIZES
    )
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"size_mib": 256, "least_mib": 64},
        "full": {"size_mib": 1024, "least_mib": 1024},
    }
    way = "write"

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        size = fio.disk_mib(int(params["size_mib"]), int(params["least_mib"]), around)
        # Each run removes the file (unlink), and the next one makes it again.
        options: dict[str, str | int] = {"filename": FILE, "size": f"{size}m", "ioengine": "psync", "unlink": 1}
        options |= self._asked()
        return RunPlan(
            prepare=(fio.remove(FILE),),
            measures=tuple(
                Command(fio.argv("write", {**options, "bs": request}), time_limit_s=fio.time_limit_s(size))
                for request in SIZES
            ),
            cleanup=(fio.remove(FILE),),
        )

    def _asked(self) -> dict[str, str]:
        return {"rw": self.way, "end_fsync": "1"}

    def _seconds(self, figures: Figures) -> float:
        return figures.runtime / 1000


WORKLOADS = (SeqReadSizes(), SeqReadSizesGuest(), SeqReadSizesHost(), SeqReadSizesWarm(), SeqWriteSizes())
