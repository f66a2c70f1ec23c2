"""Code of the workloads of fio: its command line, and the strict reading of its JSON (`json+`, fio(1), stat.c).

`json+` has the whole histogram of latencies, so that the percentiles and the mean can be checked against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from tare import lazily
from tare.errors import HostError, ParseError, UnsupportedError
from tare.workloads.base import Command, Completed, Surroundings
from tare.workloads.output import agree, positive, text_of

if TYPE_CHECKING:
    from tare.workloads import fio_report as reports
    from tare.workloads.fio_report import Figures
else:
    reports = lazily.LazyModule("tare.workloads.fio_report")

PACKAGES = ("fio", "coreutils")
#: What fio may take beyond its work: under an emulated CPU it starts within seconds.
GRACE_S = 120.0
#: Slowest disk that is waited for.
SLOWEST_MIB_S = 2.0
PERCENTILES = ("50.000000", "99.000000", "99.900000")
#: Middle of the last bucket of fio's histogram in ns (FIO_IO_U_PLAT_NR, stat.c): it records slower requests there.
CEILING_NS = 17_112_760_320
#: By how much the mean over the histogram's middles may miss the mean: the width of its buckets.
_BUCKET = 1 / 64
#: fio's messages for a file that cannot be opened or used with O_DIRECT (filesetup.c, ioengines.c).
_NO_DIRECT = (
    "looks like your file system does not support direct=1",
    "destination does not support O_DIRECT",
    "first direct IO errored",
)

Way = Literal["read", "write"]


def argv(name: str, options: Mapping[str, str | int]) -> tuple[str, ...]:
    """Return the command of one job of fio.

    What fio would find out about the machine and act upon is fixed, so that it does the same everywhere.
    """
    fixed: dict[str, str | int] = {
        "thread": 1,
        "clocksource": "clock_gettime",  # and not the time stamp counter where it looks reliable
        "invalidate": 0,  # the campaign decides what is cached
        "fallocate": "none",
        "lat_percentiles": 1,
        "clat_percentiles": 0,
        "percentile_list": ":".join(str(float(percentile)) for percentile in PERCENTILES),
        "disk_util": 0,
    }
    arguments = [f"--{key}={value}" for key, value in {**fixed, **options}.items()]
    return ("fio", "--output-format=json+", "--eta=never", f"--name={name}", *arguments)


def layout(name: str, mib: int) -> Command:
    """Write a file of so many MiB: real data, written back, so that nothing is read from holes."""
    options: dict[str, str | int] = {"filename": name, "size": f"{mib}m", "rw": "read", "bs": "1m", "create_only": 1}
    return Command(argv("layout", options), time_limit_s=time_limit_s(mib))


def warm(name: str) -> Command:
    """Read a file into the page caches: fio does not leave the file that it has written in any."""
    return Command(("sh", "-c", 'cat "$1" >/dev/null', "cat", name), time_limit_s=GRACE_S)


def remove(*names: str) -> Command:
    """Remove files of the data volume; they need not be there."""
    return Command(("sh", "-c", 'rm -f "$@"', "rm", *names))


def time_limit_s(mib: float) -> float:
    """Return how long it may take to move so many MiB."""
    return GRACE_S + mib / SLOWEST_MIB_S


def fitting_mib(size: int, least: int, room_mib: int, shortage: str, fix: str) -> int:
    """Return a file's size: ``size`` MiB, halved until it fits, but at least ``least``. Raises `HostError`.

    In halves, so that the size stays the same over a campaign unless the room really shrinks.
    """
    while size > least and size > room_mib:
        size //= 2
    if size > room_mib:
        raise HostError(f"a file of {least} MiB {shortage}", fix=fix)
    return size


def disk_mib(size: int, least: int, around: Surroundings) -> int:
    """Return a file's size of which two fit on the data volume. Raises `HostError`."""
    free = around.disk_free_bytes // 2**20
    shortage = f"needs {2 * least} MiB free on the data volume, which has {free}"
    return fitting_mib(size, least, free // 2, shortage, "free disk space, or put TARE_HOME on a larger disk")


def read(done: Completed, way: Way, asked: Mapping[str, str]) -> Figures:
    """Read one job that went in one direction; ``asked`` are options that it must have had.

    Raises `UnsupportedError` where O_DIRECT is refused, and `ParseError` for any other failure, another job than was
    asked for, or a report that contradicts itself.
    """
    _refuse_direct(done)
    job = reports.job_of(text_of(done))
    if job.error != 0:
        raise ParseError(f"fio ended its job with error {job.error}")
    ran = {key: job.options.get(key) for key in asked}
    if ran != asked:
        raise ParseError(f"fio ran another job than was asked: {ran}, not {dict(asked)}")
    figures, reverse = (job.read, job.write) if way == "read" else (job.write, job.read)
    if reverse.io_bytes != 0 or reverse.total_ios != 0:
        raise ParseError(f"fio has also moved {reverse.io_bytes} bytes in the other direction")
    _check(figures)
    return figures


def _refuse_direct(done: Completed) -> None:
    output = b"\n".join((done.stdout, done.stderr)).decode(errors="replace")
    if any(words in output for words in _NO_DIRECT):
        raise UnsupportedError("its filesystem does not support direct I/O: fio says that it does not support O_DIRECT")


def _check(figures: Figures) -> None:
    """Check that the report is complete, and that its parts agree. Raises `ParseError`."""
    if figures.short_ios != 0 or figures.drop_ios != 0:
        raise ParseError(f"fio has {figures.short_ios} requests that were cut short, {figures.drop_ios} that were lost")
    seconds = positive("fio", "a time", figures.runtime) / 1000
    agree("fio", "bytes a second", figures.io_bytes / seconds, positive("fio", "bytes a second", figures.bw_bytes))
    agree("fio", "requests a second", figures.total_ios / seconds, positive("fio", "requests a second", figures.iops))
    latency = figures.lat_ns
    positive("fio", "a mean latency", latency.mean)
    bins = sorted((int(middle), count) for middle, count in latency.bins.items())
    if not latency.samples == sum(count for _, count in bins) == figures.total_ios:
        raise ParseError(f"fio has {latency.samples} latencies of {figures.total_ios} requests")
    mean = sum(middle * count for middle, count in bins) / latency.samples
    agree("fio", "the mean latency", mean, latency.mean, slack=latency.mean * _BUCKET)
    if max(latency.percentile.get(percentile, 0) for percentile in PERCENTILES) >= CEILING_NS:
        raise ParseError(f"fio tells no latency above {CEILING_NS / 1e9:.1f} s, and one of its percentiles is there")
    for percentile in PERCENTILES:
        if latency.percentile.get(percentile) != _percentile(bins, float(percentile) / 100 * latency.samples):
            raise ParseError(f"fio contradicts itself on the percentile {float(percentile):g}")


def _percentile(bins: list[tuple[int, int]], rank: float) -> int | None:
    """Return the middle of the bucket that reaches ``rank`` latencies (stat.c, calc_clat_percentiles)."""
    cumulative = 0
    for middle, count in bins:
        cumulative += count
        if cumulative >= rank:
            return middle
    return None
