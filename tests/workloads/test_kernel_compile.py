"""The kernel's build: what is run, the time of a build that said that it was made, and the refusals."""

import pytest

from tare.errors import HostError, ParseError
from tare.workloads import workload_registry
from tare.workloads.base import Surroundings
from workloads.captures import captured, completed, text

KERNEL = workload_registry.get("kernel-compile")
QUICK = KERNEL.profiles["quick"]
FULL = KERNEL.profiles["full"]
GIB = 2**30


def around(free=100 * GIB, cpus=1):
    return Surroundings(GIB, cpus, free, None, None, None)


def test_a_copy_of_the_prepared_tree_is_built_with_as_many_jobs_as_cpus():
    plan = KERNEL.plan(QUICK, around(cpus=2))
    make = "make -C /usr/src/tare-kernel/source O=/data/tare-kernel ARCH=x86_64"
    assert [" ".join(command.argv) for command in plan.measures] == [f"{make} -j2 lib/math/"]
    assert [" ".join(command.argv) for command in plan.prepare] == [
        'sh -c rm -rf "$2" && cp -a "$1" "$2" copy /usr/src/tare-kernel/build /data/tare-kernel',
        f"{make} -s prepare",
    ]
    assert [" ".join(command.argv) for command in plan.cleanup] == ["rm -rf /data/tare-kernel"]
    assert " ".join(KERNEL.plan(FULL, around()).measures[0].argv) == f"{make} -j1 bzImage"
    assert KERNEL.layer.name == "kernel"


def test_a_full_disk_is_refused_with_the_fix():
    with pytest.raises(HostError, match="needs 256 MiB free on the data volume, which has 255") as refused:
        KERNEL.plan(QUICK, around(free=256 * 2**20 - 1))
    assert "TARE_HOME" in refused.value.fix


@pytest.mark.parametrize(
    ("capture", "params"),
    [("kernel-compile", QUICK), ("kernel-compile-gvisor", QUICK), ("kernel-compile-full", FULL)],
)
def test_the_time_is_that_of_the_whole_make(capture, params):
    outcome = KERNEL.parse(params, [captured(capture)])
    assert (outcome.samples, outcome.work) == ({"time": 1.0}, 1)


@pytest.mark.parametrize(
    ("result", "params", "message"),
    [
        (captured("kernel-compile-no-space", code=2), QUICK, "ended with 2: .*Error 2"),
        (captured("kernel-compile-error", code=2), QUICK, "ended with 2: .*Error 2"),
        (captured("kernel-compile-error"), QUICK, "did not say that it built lib/math/"),
        (captured("kernel-compile-killed", signal=9), QUICK, "killed by signal 9"),
        (captured("kernel-compile-killed"), QUICK, "did not say that it built lib/math/"),
        (captured("kernel-compile-again"), QUICK, "did not say that it built lib/math/"),
        (captured("kernel-compile"), FULL, "did not say that it built bzImage"),
        (captured("kernel-compile"), {"target": "lib/"}, "did not say that it built lib/"),
        (captured("kernel-compile-full"), QUICK, "did not say that it built lib/math/"),
        (captured("sysbench-cpu"), QUICK, "strange line: 'sysbench"),
        (completed(), QUICK, "did not say that it built lib/math/: no output"),
    ],
)
def test_what_was_not_built_is_refused_and_shown(result, params, message):
    with pytest.raises(ParseError, match=message):
        KERNEL.parse(params, [result])


def test_one_build_is_one_result():
    with pytest.raises(ParseError, match="2 results came"):
        KERNEL.parse(QUICK, [captured("kernel-compile")] * 2)


@pytest.mark.thorough
@pytest.mark.parametrize(("capture", "params"), [("kernel-compile", QUICK), ("kernel-compile-full", FULL)])
def test_an_output_that_is_cut_off_or_has_a_line_twice_is_refused(capture, params):
    lines = text(capture).splitlines(keepends=True)
    for at in range(len(lines)):
        doubled = "".join([*lines[:at], lines[at] * 2, *lines[at + 1 :]])
        for damaged in ("".join(lines[:at]), doubled):
            with pytest.raises(ParseError):
                KERNEL.parse(params, [completed(damaged)])
