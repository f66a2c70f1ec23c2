"""What only a lab can show of system calls: a host with control groups of version 2 alone, and Debian's kernel."""

import json

import pytest

from lab.test_lab import lab
from tare.footprint import bpf, syscalls

pytestmark = [pytest.mark.lab, pytest.mark.host, pytest.mark.timeout(3600)]


def test_a_group_of_version_2_is_counted_exactly_whether_it_is_made_before_or_after(tmp_path):
    program = tmp_path / "syscalls.o"
    program.write_bytes(bpf.compiled(syscalls.SOURCE))
    done = lab("--file", str(program), "--", "python3", "tests/lab/syscalls.py", "/lab/files/syscalls.o")
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["unified"]
    assert seen["early"]["getpid"] == 1234
    assert seen["late"]["getpid"] == 66
    assert set(seen["early"]) | set(seen["late"]) <= {"getpid", "read", "write"}
    assert seen["lost"] == 0
    assert seen["known"] > 300
