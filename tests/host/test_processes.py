"""Runs of the host: what they print is capped, and nothing that they leave behind can hold tare up."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tare.errors import HostError
from tare.host import processes
from tare.setup import host_packages

MIB = 1 << 20


def test_what_a_run_takes_and_gives_is_whole():
    data = os.urandom(3 * MIB)
    done = processes.run(["sh", "-c", "tee /dev/stderr; exit 3"], stdin=data, time_limit_s=30)
    assert (done.code, done.timed_out, done.truncated) == (3, False, False)
    assert done.stdout == data
    assert done.stderr == data


def test_a_flood_is_let_go_beyond_the_cap_and_told():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = processes.run(["sh", "-c", "head -c 512M /dev/zero; echo last >&2"], time_limit_s=60, output_cap=100_000)
    assert (done.code, len(done.stdout), done.truncated, done.stderr) == (0, 100_000, True, b"last\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # KiB
    with pytest.raises(HostError, match="printed more than 100,000 bytes"):
        done.require()


@pytest.mark.thorough
@pytest.mark.parametrize("says", ["yes", "while :; do echo x; sleep 0.05; done", "echo x; exec sleep 60"])
def test_a_flood_a_trickle_and_silence_end_at_the_limit(says, awake):
    began = awake.seconds
    done = processes.run(["sh", "-c", says], time_limit_s=0.5)
    assert done.timed_out
    assert done.stdout.startswith((b"x", b"y"))
    assert awake.seconds - began < 5


def test_one_that_fled_with_the_pipes_does_not_hold_the_end_up(awake):
    began = awake.seconds
    done = processes.run(["sh", "-c", "echo here; setsid sleep 8 & sleep 60"], time_limit_s=0.5)
    assert (done.timed_out, done.stdout) == (True, b"here\n")
    assert awake.seconds - began < 5


def test_one_that_wants_none_of_its_stdin_is_no_error():
    assert processes.run(["true"], stdin=bytes(MIB), time_limit_s=30).code == 0


def test_more_open_files_than_select_takes_are_no_hindrance():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 1200:
        pytest.skip("a hard limit of open files below 1,200")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1200, before[1]))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1050)]
    try:
        # It closes its pipes before it ends: what is waited for then is the process itself.
        done = processes.run([sys.executable, "-P", "-c", "import os, time; os.closerange(0, 3); time.sleep(0.3)"])
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert done.code == 0


def test_no_descriptor_stays():
    before = set(Path("/proc/self/fd").iterdir())
    processes.run(["sh", "-c", "yes & sleep 60"], stdin=bytes(MIB), time_limit_s=0.2)
    processes.run(["true"])
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_a_stranger_with_the_number_of_a_process_that_was_waited_for_lives_on():
    ended, stranger = processes.start(["true"]), processes.start(["sleep", "60"])
    try:
        ended.wait()
        ended.pid = stranger.pid  # as after 32,768 more processes
        processes.kill_group(ended)
        time.sleep(0.05)
        assert stranger.poll() is None
    finally:
        processes.kill_group(stranger)
    assert stranger.wait() == -signal.SIGKILL


def test_one_that_ends_in_its_grace_is_not_killed_and_another_is():
    quick, slow = (processes.start(["sleep", seconds], stdin=subprocess.PIPE) for seconds in ("0.1", "60"))
    processes.end(quick, grace_s=30)
    processes.end(slow, grace_s=0.1)
    assert (quick.returncode, slow.returncode) == (0, -signal.SIGKILL)
    assert quick.stdin.closed
    assert slow.stdin.closed


def test_what_a_process_that_was_waited_for_left_in_its_group_is_killed():
    leader = processes.start(["sh", "-c", "sleep 60 >&2 & echo $!"], stdout=subprocess.PIPE)
    with leader.stdout as output:
        left = int(output.read())
    leader.wait()
    processes.kill_group(leader)
    for _ in range(500):
        if not Path(f"/proc/{left}").exists() or " Z " in Path(f"/proc/{left}/stat").read_text():
            return
        time.sleep(0.01)
    pytest.fail("it lives on")


def _planted(folder, name):
    """A module of another user's in a folder, which leaves a mark where it is run."""
    (folder / f"{name}.py").write_text(f"import pathlib; pathlib.Path({str(folder / 'ran')!r}).touch()\n")


def test_a_child_is_in_no_folder_of_another_users(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert processes.run(["pwd"]).text == "/\n"
    assert processes.run(["pwd"], cwd=tmp_path).text == f"{tmp_path}\n"


def test_what_asks_the_hosts_python_runs_nothing_of_the_current_folder(tmp_path, monkeypatch):
    for name in ("ensurepip", "venv", "json"):
        _planted(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    words = {"python3:json", "python3:no_such_module"}
    assert host_packages.present([*words, "python3:ensurepip,venv"]) >= {"python3:json"}
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("path", [".:/usr/bin:/bin", ":/usr/bin:/bin", "bin::/usr/bin:/bin", "/usr/bin:/bin:"])
def test_no_program_is_found_in_the_current_folder(path, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    for planted in (tmp_path / "id", tmp_path / "bin" / "id", tmp_path / "only-here"):
        planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path)
    assert processes.find("id") == "/usr/bin/id"
    assert processes.find("only-here") is None
    processes.run(["id"]).require()
    # What children look for themselves they look for in their own current folder, if they have one to look in.
    processes.run(["sh", "-c", "id; command -v only-here || true"], cwd=tmp_path).require()
    assert not (tmp_path / "ran").exists()
    assert processes.find("./only-here") == f"{tmp_path}/only-here"  # who names a place means it


def test_a_child_has_the_listed_environment_and_what_it_is_given(monkeypatch):
    secret = {
        "AWS_SECRET_ACCESS_KEY": "x", "GITHUB_TOKEN": "x", "https_proxy": "http://u:p@h", "LD_PRELOAD_X": "x",
        "LD_LIBRARY_PATH": ":/opt/lib", "PYTHONPATH": ".", "PERL5LIB": ".", "BASH_ENV": "./x", "ENV": "./x",
    }  # fmt: skip
    for name, value in (secret | {"LANG": "C.UTF-8", "LC_TIME": "C", "TZ": "UTC"}).items():
        monkeypatch.setenv(name, value)
    shown = processes.run(["/usr/bin/env", "-0"], env={"MORE": "1", "LC_TIME": "POSIX"}).text.split("\0")[:-1]
    has = dict(line.split("=", 1) for line in shown)
    assert has.keys().isdisjoint(secret)
    assert has.keys() <= {
        "HOME",
        "LANG",
        "LANGUAGE",
        "LC_ALL",
        "LC_CTYPE",
        "LC_TIME",
        "TERM",
        "TZ",
        "PATH",
        "MORE",
        "TARE_RUN_BY",
    }
    assert (has["LANG"], has["LC_TIME"], has["TZ"], has["MORE"]) == ("C.UTF-8", "POSIX", "UTC", "1")
    assert "/usr/sbin" in has["PATH"].split(":")


def test_a_held_child_is_as_clean(monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    pipe = subprocess.PIPE
    held = processes.start_held(["sh", "-c", "env; pwd"], stdin=pipe, stdout=pipe, stderr=pipe, cgroup_procs=())
    held.go()
    shown = held.process.communicate()[0].decode()
    assert "GITHUB_TOKEN" not in shown
    assert shown.endswith("\n/\n")


def test_variables_are_kept_by_name_and_pattern(monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY", "PIP_INDEX_URL", "GOPROXY", "MY_TOKEN", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "1")
    assert {"https_proxy", "HTTPS_PROXY"} <= processes.kept(*processes.DOWNLOADS).keys()
    assert {"PIP_INDEX_URL", "GOPROXY"} <= processes.kept(*processes.BUILDS).keys()
    assert processes.kept(*processes.BUILDS).keys().isdisjoint({"MY_TOKEN", "GOOGLE_API_KEY"})
    assert processes.own_environment()["MY_TOKEN"] == "1"


def test_a_command_in_the_users_place_has_the_users_folder(tmp_path, monkeypatch):
    """`tare -o x.tare` without root goes on in namespaces, and means the user's folder there."""
    program = (
        "from tare.host import processes\n"
        "import sys; sys.exit(processes.stand_for(['pwd'], env=processes.own_environment()))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}\n"
