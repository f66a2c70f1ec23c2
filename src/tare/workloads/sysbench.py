"""The common output of all tests of sysbench 1.0: https://github.com/akopytov/sysbench, sb_report and sb_timer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tare.errors import ParseError
from tare.workloads.base import Completed
from tare.workloads.output import ROUNDING, agree, positive, read_lines, text_of

PACKAGES = ("sysbench",)
#: What sysbench may take beyond its ``--time``: it starts, opens files, and flushes at the end.
GRACE_S = 30.0

NUMBER = r"\d+(?:\.\d+)?"
_TEST = (
    r"sysbench 1\.0\.\d+ \(using (?:system|bundled) LuaJIT [\w.-]+\)",
    r"Running the test with following options:",
    r"Number of threads: (?P<threads>\d+)",
    r"Initializing random number generator from current time",
)
_STARTED = (r"Initializing worker threads\.\.\.", r"Threads started!")
_GENERAL = (
    r"General statistics:",
    rf"total time: +(?P<seconds>{NUMBER})s",
    r"total number of events: +(?P<events>\d+)",
    r"Latency \(ms\):",
    rf"min: +{NUMBER}",
    rf"avg: +{NUMBER}",
    rf"max: +{NUMBER}",
    rf"95th percentile: +{NUMBER}",
    rf"sum: +{NUMBER}",
    r"Threads fairness:",
    rf"events \(avg/stddev\): +(?P<each>{NUMBER})/{NUMBER}",
    rf"execution time \(avg/stddev\): +(?P<busy>{NUMBER})/{NUMBER}",
)


@dataclass(frozen=True, slots=True)
class SysbenchReport:
    """One run. ``fields`` are the named groups of the test's own lines."""

    seconds: float
    wall_s: float  # of the whole command
    events: int
    fields: dict[str, str]


def read(results: Sequence[Completed], threads: int, options: Sequence[str], figures: Sequence[str]) -> SysbenchReport:
    """Read the one run of a trial.

    ``options`` and ``figures`` are patterns of the test's own lines, before and after the threads started. Raises
    `ParseError` on any other line, a failed run, other threads than were asked for, or a run that did nothing.
    """
    if len(results) != 1:
        raise ParseError(f"one run of sysbench was planned, {len(results)} results came")
    fields = read_lines("sysbench", text_of(results[0]), (*_TEST, *options, *_STARTED, *figures, *_GENERAL))
    if int(fields["threads"]) != threads:
        raise ParseError(f"sysbench ran {fields['threads']} threads and not {threads}")
    positive("sysbench", "a number of events", fields["events"])
    agree("sysbench", "events", float(fields["each"]) * threads, int(fields["events"]))
    seconds = positive("sysbench", "a time", fields["seconds"])
    if float(fields["busy"]) > seconds * (1 + ROUNDING):
        raise ParseError(f"sysbench contradicts itself: each thread worked {fields['busy']} s of {seconds:g} s")
    return SysbenchReport(seconds, results[0].wall_ns / 1e9, int(fields["events"]), fields)


def require_rate(report: SysbenchReport, unit: str, count: float, rate: float) -> None:
    """Check that a rate is the count divided by the time it was measured over. Raises `ParseError`.

    That time is not the printed total: sysbench 1.0.20 reads the total first, then goes through its histogram of
    latencies, and reads the clock of the rates last (sysbench.c, report_cumulative). What it does in between takes 0.5
    to 6 ms, and much longer on a busy CPU, which is a large part of a run of 0.1 s. So the time is no shorter than the
    total, and no longer than the whole command took.
    """
    seconds = count / positive("sysbench", f"{unit} a second", rate)
    if not report.seconds * (1 - ROUNDING) <= seconds <= max(report.wall_s, report.seconds) * (1 + ROUNDING):
        raise ParseError(
            f"sysbench contradicts itself on {unit}: {count:g} at {rate:g} a second are {seconds:.4f} s, its total time"
            f" is {report.seconds:g} s and the command took {report.wall_s:.4f} s"
        )


def require_time(report: SysbenchReport, asked_s: float) -> None:
    """Check that a run of a given time has lasted that long. Raises `ParseError`."""
    if report.seconds < asked_s * 0.99:
        raise ParseError(f"sysbench ended after {report.seconds} s, {asked_s} s were asked for")
