"""Limits of tare's own process are met by one line, whoever meets them, and never by a verdict's exit code."""

import errno
import resource
import subprocess
import sys

import pytest

from tare.errors import HostError
from tare.host import own_limits, processes, session_rights


def test_this_process_has_what_tare_needs():
    own_limits.require()


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "open files"),
        (RuntimeError("can't start new thread"), "processes or threads|processes and threads"),
    ],
)
def test_an_error_of_the_system_names_the_limit(error, what):
    with pytest.raises(HostError, match=what) as explained:
        raise own_limits.explained(error)
    assert explained.value.fix


@pytest.mark.parametrize("error", [OSError(errno.ENOENT, "No such file"), RuntimeError("other"), ValueError()])
def test_other_errors_are_no_limits(error):
    assert own_limits.explained(error) is None


def test_memory_is_a_limit_only_where_there_is_one(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda number: (resource.RLIM_INFINITY,) * 2)
    assert own_limits.explained(MemoryError()) is None
    monkeypatch.setattr(resource, "getrlimit", lambda number: (1 << 30, resource.RLIM_INFINITY))
    assert "1024 MiB of addresses" in own_limits.explained(MemoryError()).what


def test_a_process_that_cannot_be_started_is_one_line(monkeypatch):
    def refuse(*_, **__):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(HostError, match="processes"):
        processes.run(["true"])


def test_the_fix_is_one_that_this_user_can_carry_out(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda number: (12, 4096))
    assert own_limits.no_files().fix == "ulimit -Sn 1024"
    monkeypatch.setattr(resource, "getrlimit", lambda number: (12, 12))
    monkeypatch.setattr(resource, "setrlimit", lambda number, values: None)
    assert own_limits.no_files().fix == "ulimit -n 1024"

    def refuse(*_):
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert own_limits.no_files().fix.startswith("as root of the host: prlimit --pid ")


def test_the_innermost_group_whose_limit_is_reached_is_named(monkeypatch, tmp_path):
    for name, most, now in (("inner", "max", "3"), ("outer", "10", "9")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pids.max").write_text(most + "\n")
        (tmp_path / name / "pids.current").write_text(now + "\n")
    files = [tmp_path / name / "pids.max" for name in ("inner", "outer")]
    monkeypatch.setattr(own_limits, "_pids_limits", lambda: iter(files))
    error = own_limits.no_threads()
    assert "only 10 processes and threads, and has 9" in error.what
    assert error.fix == f"echo max > {files[1]}"


@pytest.mark.parametrize("raised", ["BaseException('a panic')", "MemoryError()", "OSError(24, 'Too many open files')"])
def test_an_error_that_cannot_be_printed_is_no_verdict(raised):
    script = (
        "from tare import cli\n"
        f"def app(**_options): raise {raised}\n"
        "def mute(*_, **__): raise MemoryError\n"
        "cli.app, cli.show_fault, cli.Console.print = app, mute, mute\n"
        "cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr.startswith("error: MemoryError"), done.stderr


def test_a_panic_of_a_library_is_a_fault():
    script = "from tare import cli\ndef app(**_options): raise BaseException('a panic')\ncli.app = app\ncli.main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, "this is a fault of tare" in done.stderr) == (4, True), done.stderr


@pytest.mark.parametrize(("mask", "missing"), [("1ffffffffff", ""), ("1ffffdfffff", "sys_admin"), ("0", "chown, ")])
def test_missing_capabilities_are_named(monkeypatch, mask, missing):
    monkeypatch.setattr(session_rights.own_namespaces, "inside", lambda: False)
    monkeypatch.setattr(session_rights, "_capabilities", lambda: mask)
    monkeypatch.setattr(session_rights, "_read_only_groups", lambda: None)
    lacking = session_rights.lacking()
    assert (lacking is None) == (missing == "")
    assert lacking is None or missing in lacking.what
