"""Kernel functions are counted as they are: checked in a lab, where the truth is known."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tare.features.kernel.execution.lab import KERNEL, LAB_MODULE, module
from tare.features.kernel.lab import forwarded_run as lab_run
from tare.features.kernel.lab.forwarded_run import LabCommand
from tare.features.kernel.reading import kmodule

pytestmark = [pytest.mark.lab, pytest.mark.host, pytest.mark.timeout(1800)]

OURS, OTHERS = 1234, 777


@pytest.fixture(scope="module")
def seen():
    """What tests/lab/functions.py says in a lab."""
    printed = {1: b"", 2: b""}

    def output(channel, data):
        printed[channel] += data

    argv, env = ["python3", "tests/lab/functions.py"], {kmodule.BROUGHT: LAB_MODULE}
    command = LabCommand(argv, "kvm", 2 << 30, 2, 900.0, (module(lambda _: None),), kernel=KERNEL, env=env)
    assert lab_run.run(command, output, lambda _: None) == 0, printed[2].decode()
    return json.loads(printed[1])


def test_calls_of_the_group_are_counted_exactly_and_others_only_for_the_host(seen):
    assert seen["truth"]["calls"] == [[OURS + OTHERS, OURS], [5, 0]]
    assert seen["truth"]["lost"] == 0


def test_all_functions_are_watched_and_named(seen):
    truth = seen["truth"]
    assert truth["enabled"] > 30_000
    assert truth["known"] > 30_000
    assert truth["unknown"] == [], "what was hit is what can be"
    assert 100 < truth["functions"]["instance"] < truth["functions"]["host"] < truth["known"]


def test_one_counts_at_a_time_and_nothing_stays(seen):
    assert "tare clean" in seen["truth"]["twice"]
    assert seen["truth"]["left"] == [0, False, False]


def test_a_killed_counter_leaves_nothing_enabled_and_clean_removes_the_module(seen):
    killed = seen["killed"]
    assert killed["counting"] > 30_000
    assert killed["after"] == [0, True]
    assert "tare clean" in killed["again"]
    assert killed["kept"] == []
    assert killed["swept"] == [0, False]


def test_who_traces_already_is_respected(seen):
    tracer, probe, free = seen["respected"]
    assert "by the tracer function" in tracer
    assert "__x64_sys_getsid" in probe
    assert free == ""


def test_the_command_counts_in_a_lab_and_brings_the_footprints_back(tmp_path):
    file = tmp_path / "functions.tare"
    tare = Path(sys.executable).with_name("tare")
    words = ["--level", "functions", "-p", "native", "-w", "primes", "--repeats", "1", "-o", str(file)]
    done = subprocess.run([tare, "footprint", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert file.exists()
