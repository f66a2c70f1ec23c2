"""Filters of live threads: read as they were installed, and the threads left as they were."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from plain_cbpf import Op, raw

from tare.features.kernel.surface import ptrace

pytestmark = pytest.mark.host  # it takes CAP_SYS_ADMIN

HERE = Path(__file__).parent
ALLOW = raw([Op(0x06, k=0x7FFF0000)])
LONGER = raw([Op(0x20, k=0), Op(0x15, 0, 1, 333), Op(0x06, k=0x50001), Op(0x06, k=0x7FFF0000)])


@contextlib.contextmanager
def filtered(*programs):
    argv = [sys.executable, str(HERE / "filtered.py"), *(program.hex() for program in programs)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def signals(process):
    """How many it has seen; that it answers shows that it runs."""
    process.stdin.write(b"\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def threads(pid):
    return sorted(int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir())


def standing(pid):
    """Threads that are stopped or traced."""
    standing_threads = []
    for thread in threads(pid):
        text = Path(f"/proc/{pid}/task/{thread}/status").read_text()
        if "\nTracerPid:\t0\n" not in text or "State:\tt" in text or "State:\tT" in text:
            standing_threads.append(thread)
    return standing_threads


def test_stacked_filters_come_back_the_newest_first():
    with filtered(ALLOW, LONGER) as process:
        filters = ptrace.installed(threads(process.pid))
        assert len(filters) == 4
        assert set(filters.values()) == {(LONGER, ALLOW)}
        assert standing(process.pid) == []
        assert signals(process) == 0


def test_a_signal_that_comes_meanwhile_is_not_lost():
    with filtered(ALLOW) as process:
        sent = 0
        for _ in range(30):
            os.kill(process.pid, signal.SIGUSR1)
            sent += 1
            ptrace.installed(threads(process.pid))
            while signals(process) < sent:  # a second of the same signal before would be one with the first
                time.sleep(0.001)
        assert signals(process) == sent


def test_what_another_process_traces_is_said_to_be_so():
    tracer = "import sys; from tare.features.kernel.surface import ptrace; ptrace._ptrace(0x4206, int(sys.argv[1]))\n"
    tracer += "print('ready', flush=True); sys.stdin.read()"
    with filtered(ALLOW) as process:
        other = subprocess.Popen(
            [sys.executable, "-c", tracer, str(process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with other:
            assert other.stdout.readline() == b"ready\n"
            answer = ptrace.installed([process.pid])[process.pid]
            assert "another process (python" in answer.what
            other.stdin.close()
        assert ptrace.installed([process.pid])[process.pid] == (ALLOW,)


def test_what_has_ended_is_left_out():
    with filtered(ALLOW) as process:
        pass
    assert ptrace.installed([process.pid]) == {}


def test_without_the_right_the_reason_is_told():
    ask = "import sys; from tare.features.kernel.surface import ptrace\n"
    ask += "print(ptrace.installed([int(sys.argv[1])]).popitem()[1])"
    with filtered(ALLOW) as process:
        argv = ["setpriv", "--bounding-set=-sys_admin", sys.executable, "-c", ask, str(process.pid)]
        assert "CAP_SYS_ADMIN" in subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def test_under_seccomp_the_reason_is_told():
    ask = f"import sys; sys.path.insert(0, {str(HERE)!r}); import kernel_oracle\n"
    ask += f"kernel_oracle.install({ALLOW!r})\n"
    ask += "from tare.features.kernel.surface import ptrace; print(ptrace.installed([int(sys.argv[1])]).popitem()[1])"
    with filtered(ALLOW) as process:
        argv = [sys.executable, "-c", ask, str(process.pid)]
        assert "itself runs under seccomp" in subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def test_a_killed_reader_leaves_nothing_standing():
    ask = "import sys; from tare.features.kernel.surface import ptrace; print('ready', flush=True)\n"
    ask += "while True: ptrace.installed([int(word) for word in sys.argv[1:]])"
    rng = random.Random(1)
    with filtered(ALLOW) as process:
        for _ in range(4):
            argv = [sys.executable, "-c", ask, *map(str, threads(process.pid))]
            with subprocess.Popen(argv, stdout=subprocess.PIPE) as reader:
                assert reader.stdout.readline() == b"ready\n"
                time.sleep(rng.uniform(0, 0.02))
                reader.kill()
            assert standing(process.pid) == []
            assert signals(process) == 0


def test_doctor_finds_that_filters_can_be_read():
    check = ptrace.check()
    assert (check.name, check.state) == ("seccomp filters", "ok")
