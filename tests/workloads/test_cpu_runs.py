"""Linpack: what is run, its figures on captured output, and the refusals."""

import re

import pytest

from tare.errors import HostError, ParseError
from tare.workloads import workload_registry
from tare.workloads.base import Surroundings
from workloads.captures import captured, completed, text

MIB = 2**20
GIB = 2**30
QUICK = workload_registry.get("linpack").profiles["quick"]
DONE = completed(stderr=text("linpack-singleton", ".err"), argv=("hpcc",))


def around(memory=GIB, free=100 * GIB, cpus=1):
    return Surroundings(memory, cpus, free, None, None, None)


def linpack(report, params=None, run=DONE):
    return workload_registry.get("linpack").parse({**QUICK, **(params or {})}, [run, report])


@pytest.mark.parametrize("capture", ["linpack", "linpack-gvisor"])
def test_linpack_takes_the_summarys_figure(capture):
    outcome = linpack(captured(capture))
    tflops = re.search(r"HPL_Tflops=(\S+)", text(capture))[1]
    assert outcome.samples == {"gflops": pytest.approx(float(tflops) * 1e3)}
    assert 0.1 < outcome.samples["gflops"] < 100
    assert outcome.work == 1


def test_linpack_runs_one_process_without_a_daemon():
    plan = workload_registry.get("linpack").plan(QUICK, around())
    assert plan.measures[0].argv == ("hpcc",)
    assert plan.measures[0].env["OMPI_MCA_ess_singleton_isolated"] == "1"
    order = plan.prepare[1].stdin.decode().splitlines()
    # HPL reads by lines: the size of the problem is the sixth, and there are 35.
    assert (order[5].split()[0], order[7].split()[0], order[12].split()[0]) == ("1000", "64", "16.0")
    assert len(order) == 35
    assert (
        workload_registry.get("linpack")
        .plan(workload_registry.get("linpack").profiles["full"], around())
        .prepare[1]
        .stdin.decode()
    )


def test_linpack_must_fit_the_memory():
    full = workload_registry.get("linpack").profiles["full"]
    with pytest.raises(HostError, match="3000 equations need 338 MiB of memory, the instance has 256"):
        workload_registry.get("linpack").plan(full, around(memory=256 * MIB))
    workload_registry.get("linpack").plan(QUICK, around(memory=256 * MIB))


@pytest.mark.parametrize(
    ("capture", "params", "message"),
    [
        ("linpack-residual", {}, "strange line .*Computational tests pass.* 0.0"),
        ("linpack-no-memory", {}, "strange line"),
        ("linpack", {"n": 3000}, "hpcc solved N=1000, not 3000"),
        ("linpack", {"nb": 128}, "hpcc solved NB=64, not 128"),
        ("sysbench-cpu", {}, "strange line"),
    ],
)
def test_linpack_is_refused_and_shown(capture, params, message):
    with pytest.raises(ParseError, match=message):
        linpack(captured(capture), params)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (captured("linpack-daemon", code=1), "ended with 1: .*unable to find network interfaces"),
        (captured("linpack-wrong-size", code=None, signal=11), "killed by signal 11: .*Segmentation fault"),
        (completed(timed_out=True), "ended at its time limit"),
    ],
)
def test_a_run_that_failed_is_no_figure_whatever_its_report_says(run, message):
    with pytest.raises(ParseError, match=message):
        linpack(captured("linpack"), run=run)


def test_a_report_that_is_missing_is_told():
    with pytest.raises(ParseError, match="1 results came"):
        workload_registry.get("linpack").parse(QUICK, [DONE])
    with pytest.raises(ParseError, match=r"ended with 2: sed: can't read hpccoutf\.txt"):
        linpack(completed(code=2, stderr="sed: can't read hpccoutf.txt: No such file or directory"))


def changed(of, to):
    report = text("linpack").replace(of, to)
    assert report != text("linpack")
    return completed(report)


def test_figures_of_one_report_must_agree():
    tflops = re.search(r"HPL_Tflops=(\S+)", text("linpack"))[1]
    for wrong, message in [
        (changed(f"HPL_Tflops={tflops}", f"HPL_Tflops={float(tflops) * 1.1:.6g}"), "contradicts itself on Gflops"),
        (changed("HPL_N=1000", "HPL_N=100"), "solved N=100/1000"),
        (changed("Success=1", "Success=0"), "strange line"),
        (changed("...... PASSED", "...... FAILED"), "strange line"),
        (changed("1 tests completed and passed", "0 tests completed and passed"), "strange line"),
    ]:
        with pytest.raises(ParseError, match=message):
            linpack(wrong)


@pytest.mark.thorough
def test_damaged_reports_are_refused_or_give_the_same_figure():
    whole, good = text("linpack"), linpack(captured("linpack"))
    lines = whole.splitlines(keepends=True)
    damaged = [whole[:end] for end in range(0, len(whole.rstrip()), 13)]
    damaged += ["".join([*lines[:at], line * copies, *lines[at + 1 :]]) for at, line in enumerate(lines)
                for copies in (0, 2) if line.strip()]  # fmt: skip
    damaged += [whole[: at.start()] + digit + whole[at.end() :] for at in re.finditer(r"\d", whole) for digit in "09"]
    for report in damaged:
        try:
            outcome = linpack(completed(report))
        except ParseError:
            continue
        assert outcome.samples == pytest.approx(good.samples, rel=0.05), report
    for end in range(1, 160):
        with pytest.raises(ParseError):
            linpack(completed(whole.rstrip()[:-end]))
