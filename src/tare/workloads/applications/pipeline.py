"""A C++ program from a fresh checkout to its analysis: what a build server does all day.

Kärnä 2021 (6.7): a program is compiled, its unit tests run, their coverage collected, and the source
analysed statically, each stage timed. The program is a small one of tare's own (``program/``, ten files and four units
with tests), unpacked anew for each trial. The stages: CMake configures, g++ compiles with as many jobs as there are
CPUs, ctest runs GoogleTest's programs, gcovr reads their coverage, cppcheck analyses. No client takes part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Layer, Metric
from tare.workloads.applications import serving
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import shown, text_of

FOLDER = "/data/tare-build"
#: An emulated processor takes some thirty times as long as a fast one.
LIMIT_S = 1800.0
_ENGLISH: Mapping[str, str] = {"LC_ALL": "C"}
_STAGES = ("configure", "compile", "test", "coverage", "analysis")
#: The files that cppcheck is to look through.
SOURCES = ("amounts.cpp", "ledger.cpp", "table.cpp", "words.cpp")
_BUILT = re.compile(r"^\[100%\] Built target test_\w+$", re.MULTILINE | re.ASCII)
_PASSED = re.compile(r"^100% tests passed, 0 tests failed out of (\d+)$", re.MULTILINE | re.ASCII)
_COVERED = re.compile(r"^TOTAL +(\d+) +(\d+) +\d+%$", re.MULTILINE | re.ASCII)
_CHECKED = re.compile(r"^Checking (\S+) \.\.\.$", re.MULTILINE | re.ASCII)


class Pipeline(RunWorkload):
    """One run of all stages. Parameters: how many of the four ``units`` are tested, which takes long to compile."""

    name = "build-pipeline"
    title = "a C++ program configured, compiled, tested, its coverage read, analysed"
    family = Family.APPLICATION
    metrics = (
        Metric("time", "s", Direction.LOWER, "all stages"),
        Metric("configure", "s", Direction.LOWER, "CMake looks at the compiler and writes the makefiles"),
        Metric("compile", "s", Direction.LOWER, "g++ and the linker, a job for each CPU"),
        Metric("test", "s", Direction.LOWER, "ctest runs the unit tests"),
        Metric("coverage", "s", Direction.LOWER, "gcovr reads what the tests ran"),
        Metric("analysis", "s", Direction.LOWER, "cppcheck"),
    )
    work_unit = "pipeline"
    loaded: ClassVar[bool] = False
    packages = ("cmake", "coreutils", "cppcheck", "gcovr")  # and what these start, which the layer has
    layer = Layer("build", Path(__file__).with_name("build.toml").read_text())
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"units": 1}, "full": {"units": 4}}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        unpack = ("sh", "-c", 'rm -rf "$1" && mkdir "$1" && tar -x -C "$1"', "unpack", FOLDER)
        stages = (
            ("cmake", "-S", ".", "-B", "build", f"-DUNITS={params['units']}"),
            ("cmake", "--build", "build", f"-j{around.cpu_count}"),
            ("ctest", "--test-dir", "build", "--output-on-failure"),
            ("gcovr", "-r", ".", "--object-directory", "build", "--exclude", "test_.*"),
            ("cppcheck", "--enable=warning,performance,portability", "--error-exitcode=1", *SOURCES),
        )
        return RunPlan(
            prepare=(Command(unpack, stdin=_checkout(), time_limit_s=LIMIT_S),),
            measures=tuple(Command(stage, env=_ENGLISH, cwd=FOLDER, time_limit_s=LIMIT_S) for stage in stages),
            cleanup=(Command(("rm", "-rf", FOLDER), time_limit_s=LIMIT_S),),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != len(_STAGES):
            raise ParseError(f"{len(_STAGES)} stages were planned, {len(results)} results came")
        printed = dict(zip(_STAGES, map(text_of, results), strict=True))
        units = int(params["units"])
        done = {
            "configure": "-- Build files have been written to:" in printed["configure"],
            "compile": len(_BUILT.findall(printed["compile"])) > 0,
            "test": _PASSED.findall(printed["test"]) == [str(units)],
            "coverage": any(int(run) > 0 for _, run in _COVERED.findall(printed["coverage"])),
            "analysis": tuple(_CHECKED.findall(printed["analysis"])) == SOURCES,
        }
        for stage, went_well in done.items():
            if not went_well:
                raise ParseError(f"{stage} did not say that it was done: {shown(printed[stage])}")
        times = {stage: result.wall_ns / 1e9 for stage, result in zip(_STAGES, results, strict=True)}
        return Outcome({"time": sum(times.values()), **times}, work=1)


def _checkout() -> bytes:
    """Return the program as a tar, the same bytes each time."""
    folder = resources.files("tare.workloads.applications").joinpath("program")
    return serving.tar_of({file.name: file.read_bytes() for file in folder.iterdir()})


WORKLOAD = Pipeline()
