"""Runs of the host: what they print is capped, and nothing that they leave behind can hold tare up."""

import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tare.errors import HostError
from tare.host import processes

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
