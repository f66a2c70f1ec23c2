"""What only a lab can show of system calls: a host with control groups of version 2 alone, and Debian's kernel."""

import json

import pytest

from tare.features.kernel.counters import syscalls
from tare.features.kernel.lab import forwarded_run as lab_run
from tare.features.kernel.lab.forwarded_run import LabCommand
from tare.features.kernel.reading import bpf

pytestmark = [pytest.mark.lab, pytest.mark.host, pytest.mark.timeout(1800)]


def test_a_group_of_version_2_is_counted_exactly_whether_it_is_made_before_or_after(tmp_path):
    printed = {1: b"", 2: b""}

    def output(channel, data):
        printed[channel] += data

    program = tmp_path / "syscalls.o"
    program.write_bytes(bpf.compiled(syscalls.SOURCE))
    argv = ["python3", "tests/lab/syscalls.py", f"/lab/files/{program.name}"]
    command = LabCommand(argv, "kvm", 2 << 30, 2, 900.0, (program,))
    assert lab_run.run(command, output, lambda _: None) == 0, printed[2].decode()
    answer = json.loads(printed[1])
    assert answer["unified"]
    assert answer["early"]["getpid"] == 1234
    assert answer["late"]["getpid"] == 66
    # The lab's clock cannot be read without the kernel.
    assert set(answer["early"]) | set(answer["late"]) <= {"getpid", "read", "write", "clock_gettime"}
    assert answer["lost"] == 0
    assert answer["known"] > 300
