"""`tare surface` as a user calls it, on processes that run already."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyseccomp
import pytest
from test_ptrace import filtered, signals, standing

from tare.features.kernel.surface.surface import Reader
from tare.footprint_model import Call
from tare.store import read_store

MAIN = [sys.executable, "-c", "from tare.cli import main; main()", "surface"]


def tare(*arguments):
    return subprocess.run([*MAIN, *arguments], capture_output=True, text=True, check=False)


@contextlib.contextmanager
def restricted():
    """A process that may do all but for these."""
    syscall_filter = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    syscall_filter.add_rule(pyseccomp.ERRNO(1), "mount")
    syscall_filter.add_rule(pyseccomp.TRAP, "keyctl")
    syscall_filter.add_rule(pyseccomp.KILL_PROCESS, "bpf")
    syscall_filter.add_rule(pyseccomp.ERRNO(1), "personality", pyseccomp.Arg(0, pyseccomp.EQ, 8))
    with tempfile.TemporaryFile() as file:
        syscall_filter.export_bpf(file)
        file.seek(0)
        program = file.read()
    with filtered(program) as process:
        yield process


@pytest.mark.host
def test_of_a_process_that_runs():
    with restricted() as process:
        done = tare("--pid", str(process.pid), "--json")
        assert done.returncode == 0, done.stderr
        [platform] = json.loads(done.stdout)["platforms"]
        of = platform["of"]
        assert platform["counts"] == {
            "allowed": of - 4, "conditional": 1, "errno": 1, "trap": 1, "kill": 1, "notify": 0, "trace": 0,
        }  # fmt: skip
        assert platform["calls"]["personality"] == "conditional"
        [tasks] = platform["tasks"]
        assert sum(tasks["threads"].values()) == 4
        assert (tasks["seccomp"], tasks["filters"], tasks["no_new_privs"]) == ("filter", 1, True)
        assert tasks["outcomes"]["mount"] == ["errno 1"]
        assert platform["abis"]["i386"]["reachable"] == 0  # the filter kills what comes by another architecture
        assert signals(process) == 0
        assert standing(process.pid) == []


@pytest.mark.host
def test_a_program_listed_only_at_the_second_look_is_read_too():
    with restricted() as first, subprocess.Popen(["sleep", "60"]) as second:
        lists = iter([[first.pid], [first.pid, second.pid], [first.pid, second.pid]])
        surface = Reader().surface("two", lambda: next(lists))
        second.kill()
        assert {tasks.pid for tasks in surface.tasks} == {first.pid, second.pid}
        assert surface.calls["mount"] is Call.ALLOWED  # the second may


@pytest.mark.host
def test_a_program_that_another_of_its_name_replaces_meanwhile_is_no_reason_to_miss_the_other():
    with restricted() as first, subprocess.Popen(["sleep", "60"]) as second, subprocess.Popen(["sleep", "60"]) as third:

        class Replacing(Reader):
            def _tasks(self, side):
                second.kill()
                second.wait()
                return super()._tasks(side)

        lists = iter([[first.pid, second.pid], *[[first.pid, third.pid]] * 2])
        surface = Replacing().surface("two", lambda: next(lists))
        third.kill()
        assert {tasks.pid for tasks in surface.tasks} == {first.pid, third.pid}
        assert surface.unread == ()


@pytest.mark.host
def test_where_programs_come_and_go_all_the_time_the_surface_says_that_some_are_missed():
    with restricted() as first, subprocess.Popen(["sleep", "60"]) as second:
        lists = itertools.cycle([[first.pid], [first.pid, second.pid]])
        surface = Reader().surface("two", lambda: next(lists))
        second.kill()
        assert "came and went" in surface.unread[0]


#: Calls nothing but read(2) from then on.
STRICT = """
import ctypes
libc, one = ctypes.CDLL(None), ctypes.create_string_buffer(1)
print("ready", flush=True)
libc.prctl(22, 1)
libc.read(0, one, 1)
"""


@pytest.mark.host
def test_of_a_process_in_strict_mode():
    argv = [sys.executable, "-c", STRICT]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        while "Seccomp:\t1" not in Path(f"/proc/{process.pid}/status").read_text():
            assert process.poll() is None
        [platform] = json.loads(tare("--pid", str(process.pid), "--json").stdout)["platforms"]
        process.kill()
    allowed = {name for name, call in platform["calls"].items() if call == "allowed"}
    assert allowed == {"read", "write", "exit", "rt_sigreturn"}
    assert platform["tasks"][0]["seccomp"] == "strict"


@pytest.mark.host
def test_as_a_table_with_the_calls():
    with restricted() as process:
        done = tare("--pid", str(process.pid), "--syscalls")
    assert done.returncode == 0
    assert "errno (1)\n    mount (errno 1)\n" in done.stdout
    assert "conditional (1)\n    personality (allow, errno 1)\n" in done.stdout


@pytest.mark.host
def test_a_killed_command_leaves_no_process_standing():
    with restricted() as process:
        again_and_again = ["--pid", str(process.pid)] * 300
        with subprocess.Popen([*MAIN, *again_and_again], stdout=subprocess.DEVNULL) as command:
            while not standing(process.pid):
                assert command.poll() is None, "it is never seen at it"
            command.kill()
        assert standing(process.pid) == []
        assert signals(process) == 0


@pytest.mark.host
def test_a_file_keeps_the_surfaces_and_takes_more_beside_its_figures(tmp_path):
    file = tmp_path / "some.tare"
    done = tare("runc", "-o", str(file), "--json")
    assert done.returncode == 0, done.stderr
    platforms = json.loads(done.stdout)["platforms"]
    assert [entry["platform"] for entry in platforms] == ["native", "runc"]
    again = tare("native", "-o", str(file))
    assert again.returncode == 0, again.stderr
    assert again.stdout.endswith(f"in {file}\n")
    with read_store(file) as store:
        surfaces = list(store.surfaces())
        assert (store.status, store.record.blocks) == ("complete", 0)
        assert [platform.name for platform in store.record.platforms] == ["native", "runc"]
    assert [surface.platform for surface in surfaces] == ["native", "runc", "native"]
    assert [surface.model_dump(mode="json") for surface in surfaces[:2]] == [
        {key: value for key, value in entry.items() if key != "counts"} for entry in platforms
    ]
    assert 0 < surfaces[0].at <= surfaces[1].at <= surfaces[2].at


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["docker", "--pid", str(os.getpid())], "name platforms, or --pid"),
        (["--pid", str(os.getpid()), "-o", "some.tare"], "a file keeps surfaces of platforms"),
        (["dokcer", "-o", "some.tare"], "no platform 'dokcer'"),
        (["--pid", "4194305"], "there is no process 4194305"),
        (["dokcer"], "no platform 'dokcer'"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(reading_commands, tmp_path, arguments, says):
    done = reading_commands.run("surface", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert Path("/proc/4194305").exists() is False  # above the kernel's greatest id
