"""The time to compile the Linux kernel, or a part of it: kcbench's figure.

Giallorenzo 2021 (table 2) ran kcbench 0.4.1, which compiles Linux 4.14 three times with as many jobs as there are
CPUs, and reports the time and the CPU use. Here it is Debian 12's own source in its smallest configuration (tinyconfig,
64 bit), out of the image's layer "kernel", with the same compiler on every platform. What is built beforehand in the
image (the configuration and the build's own tools) is not timed, and the product lies on the data volume. CPU use is
the metric that every workload has: ``cpu-cost``, of the whole platform.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tare.errors import HostError, ParseError
from tare.model import Direction, Family, Layer, Metric
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import shown, text_of

#: In the image: the source, and beside it the configured tree that each trial copies.
HOME = "/usr/src/tare-kernel"
TREE = "/data/tare-kernel"
#: What the copy and the product of the largest target take.
NEEDED_BYTES = 256 * 2**20
#: The whole kernel takes two minutes on a fast processor, and an emulated one some thirty times as long.
LIMIT_S = 7200.0
_COPY = 'rm -rf "$2" && cp -a "$1" "$2"'
_STEP = re.compile(r"  (?P<tool>[A-Z][A-Z0-9_]+) +(?P<file>\S.*)", re.ASCII)
_CHANGE = re.compile(r"make(?:\[\d+\])?: (?P<way>Entering|Leaving) directory '(?P<folder>[^']+)'", re.ASCII)
_READY = re.compile(r"Kernel: (?P<file>\S+) is ready  \(#\d+\)", re.ASCII)


class KernelCompile(RunWorkload):
    """One build. Parameters: ``target``, of the kernel's own: a folder such as ``lib/math/``, or ``bzImage``."""

    name = "kernel-compile"
    title = "kernel compile: Linux 6.1 in its smallest configuration, or a part of it"
    family = Family.CPU
    metrics = (Metric("time", "s", Direction.LOWER, "from the start of make to its end"),)
    work_unit = "build"
    packages = ("coreutils", "make")
    layer = Layer("kernel", Path(__file__).with_name("recipe-kernel.toml").read_text())
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"target": "lib/math/"}, "full": {"target": "bzImage"}}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        if around.disk_free_bytes < NEEDED_BYTES:
            raise HostError(
                f"a kernel's build needs {NEEDED_BYTES >> 20} MiB free on the data volume, which has"
                f" {around.disk_free_bytes >> 20}",
                fix="free some space, or set TARE_HOME to a larger disk",
            )
        make = ("make", "-C", f"{HOME}/source", f"O={TREE}", "ARCH=x86_64")
        copy = Command(("sh", "-c", _COPY, "copy", f"{HOME}/build", TREE), time_limit_s=LIMIT_S)
        # Does nothing where the copy is as it was built; its dates may be changed by a platform's form of the image.
        ready = Command((*make, "-s", "prepare"), time_limit_s=LIMIT_S)
        build = Command((*make, f"-j{around.cpu_count}", str(params["target"])), env=_ENGLISH, time_limit_s=LIMIT_S)
        removal = Command(("rm", "-rf", TREE), time_limit_s=LIMIT_S)
        return RunPlan(prepare=(copy, ready), measures=(build,), cleanup=(removal,))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 1:
            raise ParseError(f"one build was planned, {len(results)} results came")
        done = results[0]
        _check(str(params["target"]), text_of(done))
        return Outcome({"time": done.wall_ns / 1e9}, work=1)


_ENGLISH: Mapping[str, str] = {"LC_ALL": "C"}


def _check(target: str, text: str) -> None:
    """Every line must be one that the kernel's build prints, the target be made, and something be compiled for it."""
    folders: list[str] = []
    steps: set[tuple[str, str]] = set()
    ready = None
    for line in text.splitlines():
        step, change, end = _STEP.fullmatch(line), _CHANGE.fullmatch(line), _READY.fullmatch(line)
        if change and change["way"] == "Entering":
            folders.append(change["folder"])
        elif change and folders and folders[-1] == change["folder"]:
            folders.pop()
        elif step and (step["tool"], step["file"]) not in steps:
            steps.add((step["tool"], step["file"]))
        elif end and ready is None:
            ready = end["file"]
        else:
            raise ParseError(f"make printed a strange line: {line[:200]!r}")
    built = ("AR", f"{target}built-in.a") in steps if ready is None else ready == f"arch/x86/boot/{target}"
    if folders or not built or not any(tool == "CC" and file.endswith(".o") for tool, file in steps):
        raise ParseError(f"make did not say that it built {target}: {shown(text)}")


WORKLOAD = KernelCompile()
