"""Bonnie++: one file written and read by the character, by blocks of 8 KiB, rewritten, and read at random places.

Giallorenzo 2021 has the per-character, block and rewrite figures of sequential output and input (table 1: three runs,
the memory's size given by ``-r``; figure 5), Li 2017 those by byte and by block (3.3.4: a file of twice the memory, so
that no cache holds it; figures 7 and 8). Each character is a system call of its own here, so that those figures show
the cost of a system call. The creation of files, which no study evaluates, is left out.

`quick` has a small file, which fits the page cache: a read of it is mostly shorter than half a second, and of shorter
phases bonnie++ gives no figure. `bonnie-trajectory` runs it over and over in one instance: a figure a
run, and the time of each, as Li 2017 has them (figure 7: 24 hours; how many runs were made in it is a figure there).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import HostError, ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.storage import bonnie_report
from tare.workloads.storage.bonnie_report import PHASES, BonnieReport

#: bonnie++'s own values, given all the same.
BLOCK, SEEKS, SEEKERS = 8192, 8192, 5
#: The seed of Giallorenzo 2021, table 1.
SEED = 1580230295
#: A run asks for millions of system calls; below an emulated CPU or a traced one each takes tens of microseconds.
GRACE_S = 1200.0
#: Slowest disk that is waited for.
SLOWEST_MIB_S = 2.0
#: Free space that is required, as a multiple of the file's size: filesystems get slow when they are full.
ROOM = 1.25

_METRICS = (
    Metric("block-write", "MiB/s", Direction.HIGHER, "data written a second, by blocks"),
    Metric("block-read", "MiB/s", Direction.HIGHER, "data read a second, by blocks"),
    Metric("rewrite", "MiB/s", Direction.HIGHER, "data read, changed and written a second, by blocks"),
    Metric("char-write", "KiB/s", Direction.HIGHER, "data written a second, by the character"),
    Metric("char-read", "KiB/s", Direction.HIGHER, "data read a second, by the character"),
    Metric("seeks", "seeks/s", Direction.HIGHER, "blocks read at random places a second, every tenth changed"),
)


class Bonnie(RunWorkload):
    """Parameters: ``size_mib`` (0: twice the memory limit), ``char_mib`` (what goes by the character)."""

    name = "bonnie"
    title = "Bonnie++: per character, block, rewrite, seeks"
    family = Family.STORAGE
    metrics: ClassVar[tuple[Metric, ...]] = _METRICS
    work_unit = "MiB"
    packages = ("bonnie++",)
    no_headline = (
        "bonnie++ tells no speed of what took less than half a second, as writing a file that fits the page cache may; "
        "with --profile full the file is twice as large as an instance's memory"
    )
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"size_mib": 1024, "char_mib": 3},
        "full": {"size_mib": 0, "char_mib": 3},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        size = int(params["size_mib"]) or 2 * (around.memory_bytes >> 20)
        free = around.disk_free_bytes >> 20
        if free < ROOM * size:
            raise HostError(
                f"a file of {size} MiB needs {ROOM * size:.0f} MiB free on the data volume, which has {free}",
                fix="free disk space, put TARE_HOME on a larger disk, or give instances less memory (--memory)",
            )
        argv = (
            "bonnie++",
            *("-d", "."),
            *("-s", f"{size}:{BLOCK}:{SEEKS}:{SEEKERS}"),
            *("-r", f"{size // 2}"),
            f"-f{params['char_mib']}",
            *("-n", "0"),
            *("-u", "root"),
            *("-m", "tare"),
            *("-z", f"{SEED}"),
        )
        # It goes through the file about six times, and sleeps once.
        command = Command(argv, time_limit_s=GRACE_S + 6 * size / SLOWEST_MIB_S)
        return RunPlan(measures=(command,) * self._runs(params))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        [report] = self._reports(params, results)
        return Outcome(_figures(report), work=_moved_mib(report, params))

    def _runs(self, params: Params) -> int:
        return 1

    def _reports(self, params: Params, results: Sequence[Completed]) -> list[BonnieReport]:
        if len(results) != self._runs(params):
            raise ParseError(f"{self._runs(params)} runs of bonnie++ were planned, {len(results)} results came")
        reports = [bonnie_report.read(done) for done in results]
        for report in reports:
            ran = (report.seed, report.seeks, report.seekers)
            if ran != (SEED, SEEKS, SEEKERS) or report.size_mib not in {params["size_mib"], reports[0].size_mib}:
                raise ParseError(f"bonnie++ ran something else than was asked: {report}")
            if params["size_mib"] not in {0, report.size_mib}:
                raise ParseError(f"bonnie++ used a file of {report.size_mib} MiB, {params['size_mib']} were asked for")
        return reports


class BonnieTrajectory(Bonnie):
    """Bonnie++ over and over in one instance. Parameters: those of `bonnie`, and ``iterations``."""

    name = "bonnie-trajectory"
    title = "Bonnie++ over and over: each run's figures, and its time"
    metrics = (*_METRICS, Metric("iteration", "s", Direction.LOWER, "time of a run"))
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"size_mib": 512, "char_mib": 1, "iterations": 2},
        "full": {"size_mib": 0, "char_mib": 3, "iterations": 20},
    }

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        reports = self._reports(params, results)
        figures = [_figures(report) for report in reports]
        series: dict[str, Sequence[float | None]] = {
            metric.name: [report_figures.get(metric.name) for report_figures in figures] for metric in _METRICS
        }
        series["iteration"] = [done.wall_ns / 1e9 for done in results]
        return Outcome({}, work=sum(_moved_mib(report, params) for report in reports), series=series)

    def _runs(self, params: Params) -> int:
        return int(params["iterations"])


def _figures(report: BonnieReport) -> dict[str, float]:
    """Return the figures by metric; phases that were too short are left out."""
    units = {metric.name: 1024.0 if metric.unit == "MiB/s" else 1.0 for metric in _METRICS}
    return {phase: report.figures[phase] / units[phase] for phase in PHASES if phase in report.figures}


def _moved_mib(report: BonnieReport, params: Params) -> float:
    """Return what one run reads and writes: twice by the character, four times by blocks, and seeks."""
    by_character = 2 * min(int(params["char_mib"]), report.size_mib)
    return by_character + 4 * report.size_mib + SEEKS * BLOCK / 2**20


WORKLOADS = (Bonnie(), BonnieTrajectory())
