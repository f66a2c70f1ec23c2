"""`tare footprint` as a user runs it: on this host, into a new file and into one that is there, and interrupted."""

import json
import signal
import subprocess
import sys

import pytest

import fake_campaign
from tare import cli
from tare.footprint_model import IDLE, Phase, Scope
from tare.host import cgroup, processes, state
from tare.model import Level
from tare.store import read_store

MAIN = "from tare.cli import main; main()"


def _argv(*arguments):
    return [sys.executable, "-P", "-c", MAIN, "footprint", *arguments]


def _run(folder, *arguments):
    return processes.run(_argv(*arguments), cwd=folder, env=processes.own_environment(), time_limit_s=60)


def _read(file):
    with read_store(file) as store:
        return list(store.footprints()), store.status


@pytest.mark.host
def test_a_files_footprints_are_of_what_ran_and_more_come_into_the_same_file(tmp_path):
    arguments = ["-p", "native", "-w", "call-getpid", "-w", "startup", "--repeats", "1", "-o", "some.tare"]
    done = _run(tmp_path, *arguments, "--idle", "0.2s", "--json")
    assert done.code == 0, done.stderr
    prints, status = _read(tmp_path / "some.tare")
    assert status == "complete"
    by = {(footprint.platform, footprint.phase, footprint.scope): footprint for footprint in prints}
    [start, steady] = [by["native", phase, Scope.INSTANCE] for phase in Phase]
    assert {"execve", "exit_group"} & start.hits.keys()
    assert steady.hits["getpid"] > 1_000
    assert "execve" not in steady.hits
    assert steady.hits["getpid"] <= by["native", Phase.STEADY, Scope.HOST].hits["getpid"]
    assert by[IDLE, Phase.STEADY, Scope.HOST].seconds >= 0.2
    assert {footprint.lost for footprint in prints} == {0}
    answer = json.loads(done.stdout)
    assert answer["schema"] == "tare.footprint/1"
    assert answer["footprints"] == [footprint.model_dump(mode="json") for footprint in prints]
    assert [entry["workload"] for entry in answer["skipped"]] == ["startup"]

    again = _run(tmp_path, *arguments, "--idle", "0")
    assert again.code == 0, again.stderr
    all_prints, _ = _read(tmp_path / "some.tare")
    assert all_prints[: len(prints)] == prints
    assert [(footprint.phase, footprint.scope) for footprint in all_prints[len(prints) :]] == [
        (phase, scope) for phase in Phase for scope in Scope
    ]
    assert {footprint.repeat for footprint in prints} == {0}
    assert {footprint.repeat for footprint in all_prints[len(prints) :]} == {1}  # others, not the same again
    assert "startup is left out" in again.text
    assert not [root for root in cgroup.hierarchies().mounted if (root / "tare").exists()]


@pytest.mark.host
def test_an_interrupt_keeps_what_is_there_and_leaves_nothing(tmp_path):
    arguments = ["-p", "native", "-w", "call-getpid", "--repeats", "500", "--idle", "0", "-o", "some.tare"]
    process = subprocess.Popen(_argv(*arguments), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stderr:
        if b"repeat 2 of 500" in line:
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert b"what was measured is kept" in errors
    prints, status = _read(tmp_path / "some.tare")
    assert status == "interrupted"
    assert {footprint.repeat for footprint in prints} >= {0}
    assert not [root for root in cgroup.hierarchies().mounted if (root / "tare").exists()]
    assert not [path for path in state.work().iterdir() if not path.name.startswith("lab")]  # labs may run beside it


@pytest.mark.host
@pytest.mark.parametrize("command", [["footprint", "-w", "call-getpid", "-p", "native"], ["surface", "native"]])
def test_a_campaigns_file_of_another_image_is_refused_before_anything_starts_and_gets_nothing(tmp_path, command):
    fake_campaign.write(tmp_path / "night.tare", fake_campaign.Shape(blocks=1, rounds=2, workloads=("sysbench-cpu",)))
    argv = [sys.executable, "-P", "-c", MAIN, *command, "-o", "night.tare", "--trust"]
    done = processes.run(argv, cwd=tmp_path, env=processes.own_environment(), time_limit_s=60)
    errors = done.stderr.decode()
    assert done.code == 2, errors
    assert "the campaign ran image sha256:0123abcd, and now there is" in errors
    assert "other bits, other figures" in errors
    assert "starting" not in errors
    with read_store(tmp_path / "night.tare") as store:
        assert store.attachments() == []
        assert store.status == "complete"
        assert not [event for event in store.events() if "footprint" in event.text or "surface" in event.text]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeats", "0"], "0 repeats cannot be counted"),
        (["--idle", "soon"], "'soon' is not a time"),
        (["-p", "dokcer"], "docker"),
        (["-w", "primse"], "primes"),
        (["--cpus", "all"], "'all' is not a list of CPUs"),
    ],
)
def test_what_cannot_be_is_said_in_a_line_with_the_fix(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["tare", "footprint", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    errors = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in errors
    assert "fix:" in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.host
def test_stacks_of_a_reader_are_sampled_shown_and_exported_folded(tmp_path):
    arguments = ["-p", "native", "-w", "call-read-1b", "--level", "stacks", "--repeats", "1", "-o", "some.tare"]
    done = _run(tmp_path, *arguments, "--idle", "0.2s")
    assert done.code == 0, done.stderr
    output = done.stdout.decode()
    assert "Where the CPUs were: call-read-1b" in output
    assert "native entered the kernel for read " in output, output
    prints, _ = _read(tmp_path / "some.tare")
    assert {footprint.level for footprint in prints} == {Level.STACKS}
    [of_instance] = [footprint for footprint in prints if footprint.workload and footprint.scope is Scope.INSTANCE]
    stacks = [stack for stack in of_instance.hits if stack.startswith("tare-agent;") and ";vfs_read" in stack]
    assert sum(of_instance.hits[stack] for stack in stacks) > 0.1 * sum(of_instance.hits.values())
    argv = [sys.executable, "-P", "-c", MAIN, "export", "some.tare", "--table", "stacks", "--format", "folded"]
    folded = processes.run(argv, cwd=tmp_path, env=processes.own_environment()).require().stdout.decode().splitlines()
    assert f"native;call-read-1b;{stacks[0]} {of_instance.hits[stacks[0]]}" in folded
