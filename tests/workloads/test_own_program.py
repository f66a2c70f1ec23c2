"""A user's command as a workload: the commands that it becomes, and how a run of it is read."""

import dataclasses
import tomllib

import pytest

from tare.errors import ParseError, UsageError
from tare.model import Application, ImageSource, UserProgram
from tare.workloads.base import Completed, Surroundings
from tare.workloads.own import program
from tare.workloads.own.program import quoted
from tare.workloads.workload_contract import problems, require_params

AROUND = Surroundings(1 << 30, 2, 1 << 40, None, None, None)
AGENT = "/usr/local/bin/tare-agent"
RENEW = (AGENT, "renew", "/.tare-work", "/work")


def _workload(**fields):
    return program.of("job", UserProgram(**{"argv": ("run", "it"), **fields}))


def _plan(workload, application=None):
    return workload.plan(workload.profiles["quick"], dataclasses.replace(AROUND, application=application))


def _done(**fields):
    return Completed(("run",), **{"exit_code": 0, "stdout": b"", "stderr": b"", "wall_ns": 250_000_000, **fields})


def _parsed(workload, **fields):
    return workload.parse(workload.profiles["quick"], [_done(**fields)])


def test_it_is_a_workload_as_all_others():
    workload = _workload()
    assert problems(workload) == []
    require_params(workload, workload.profiles["full"])
    assert {metric.name for metric in workload.all_metrics} == {"wall", "peak-rss", "cpu-cost", "peak-memory"}


def test_a_command_alone_is_run_and_nothing_beside_it():
    plan = _plan(_workload())
    assert (plan.prepare, plan.each, plan.cleanup) == ((), (), ())
    [measured] = plan.measures
    assert (measured.argv, measured.cwd, measured.env, measured.time_limit_s) == (("run", "it"), "/data", {}, 600.0)


def test_before_each_run_the_folder_is_renewed_and_then_the_users_command_runs():
    workload = _workload(folder="/home/u/x", prepare=("make", "clean"), cleanup=("rm", "x"), warmup=2)
    plan = _plan(workload)
    each = [RENEW, ("make", "clean")]
    assert [command.argv for command in plan.each] == each
    assert [command.argv for command in plan.prepare] == [*each, ("run", "it"), *each, ("run", "it")]
    assert [command.argv for command in plan.cleanup] == [("rm", "x")]
    assert {command.cwd for command in (*plan.measures, plan.each[1], *plan.cleanup)} == {"/work"}
    assert workload.source == ImageSource(work="/home/u/x")


def test_a_warm_up_may_fail_where_failures_are_ignored_alone():
    for ignored in (False, True):
        plan = _plan(_workload(warmup=1, prepare=("p",), ignore_failure=ignored))
        assert [command.may_fail for command in plan.prepare] == [False, ignored]


def test_in_the_users_image_it_runs_as_the_image_says():
    image = Application(("/entry",), ("cmd",), {"A": "image", "B": "2"}, "/srv", "web:www")
    plan = _plan(_workload(image="docker://x/y", env={"A": "mine"}), image)
    [measured] = plan.measures
    assert measured.argv == (AGENT, "run", "--user", "web:www", "--", "run", "it")
    assert (measured.cwd, measured.env) == ("/srv", {"A": "mine", "B": "2"})
    root = _plan(_workload(image="docker://x/y"), dataclasses.replace(image, user="0"))
    assert root.measures[0].argv == ("run", "it"), "no program stands before it"


def test_an_image_is_a_layout_or_a_root_by_what_is_in_it(tmp_path):
    assert _workload(image=str(tmp_path)).source == ImageSource(str(tmp_path), folder=True)
    (tmp_path / "oci-layout").write_text("{}")
    assert _workload(image=str(tmp_path), folder="/w").source == ImageSource(str(tmp_path), work="/w")
    assert _workload(image="docker://x").source == ImageSource("docker://x")
    assert _workload().source is None


def test_packages_are_a_layer_and_what_is_none_is_refused():
    workload = _workload(packages=("python3-minimal", "make"))
    assert tomllib.loads(workload.layer.text) == {"recorded": {"packages": ["make", "python3-minimal"]}}
    assert workload.packages == ("make", "python3-minimal")
    with pytest.raises(UsageError, match="no name of a Debian package"):
        _workload(packages=('x"]\ncommands = ["touch /tmp/evil',))


def test_a_run_has_its_time_and_the_memory_of_its_largest_process():
    outcome = _parsed(_workload(), max_rss_bytes=3 << 20)
    assert outcome.samples == {"wall": 0.25, "peak-rss": 3.0}
    assert (outcome.work, outcome.unseen) == (1, {})
    unseen = _parsed(_workload(), max_rss_bytes=0)
    assert unseen.samples == {"wall": 0.25}
    assert "peak-rss" in unseen.unseen


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"exit_code": 3, "stderr": b"no\nrule\n"}, r"`run it` ended with exit code 3: no \| rule"),
        ({"exit_code": 1, "stdout": b"1 test failed\n"}, "exit code 1: 1 test failed"),
        ({"exit_code": 1}, "exit code 1: no output"),
        ({"exit_code": None, "signal": 9}, r"was killed by signal 9 \(SIGKILL\)"),
        ({"exit_code": None, "signal": 31}, "was killed by signal 31: "),
        ({"exit_code": None, "signal": 9, "timed_out": True, "wall_ns": 600_020_000_000}, "did not end within 600 s"),
        ({"exit_code": 1, "stderr": b"\x1b[2J\xff\xfe"}, "exit code 1"),
    ],
)
def test_a_run_that_fails_says_how_and_its_last_words(fields, message):
    with pytest.raises(ParseError, match=message):
        _parsed(_workload(), **fields)


def test_a_failure_is_ignored_on_request_and_a_time_limit_never():
    assert _parsed(_workload(ignore_failure=True), exit_code=3).samples["wall"] == 0.25
    assert _parsed(_workload(ignore_failure=True), exit_code=None, signal=11).samples["wall"] == 0.25
    with pytest.raises(ParseError, match="did not end within"):
        _parsed(_workload(ignore_failure=True), exit_code=None, signal=9, timed_out=True)


def test_another_command_under_the_same_name_has_other_parameters():
    digests = {
        _workload(**fields).profiles["quick"]["program"]
        for fields in ({}, {"env": {"A": "1"}}, {"argv": ("other",)}, {"warmup": 1}, {"prepare": ("p",)})
    }
    assert len(digests) == 5
    here, there = (_workload(folder=folder).profiles["quick"] for folder in ("/here", "/there"))
    assert here == there, "a folder is known by its contents"


def test_a_long_command_of_many_lines_is_short_in_a_sentence():
    assert quoted(("sh", "-c", "a\nb")) == "`sh -c 'a b'`"
    assert len(quoted(("x" * 500,))) == 82
