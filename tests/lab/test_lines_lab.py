"""The kernel that counts its lines, booted: what runs on it, and footprints of lines from the command to the file."""

import subprocess
import sys
from pathlib import Path

import pytest

from tare.features.kernel.analysis.footprint_sets import Exposure, View
from tare.features.kernel.counters.source_lines import READINGS, completed
from tare.features.kernel.lab import kernel
from tare.footprint_model import EMPTY, IDLE, Footprint, Phase, Scope
from tare.model import Level
from tare.store import read_store

pytestmark = [pytest.mark.lab, pytest.mark.host, pytest.mark.timeout(3600)]

#: As in `lines.py`, which runs in the lab.
ASKED = (1234, 777)
TARE = Path(sys.executable).with_name("tare")


def done(*words):
    """What tare prints; it must end well."""
    finished = subprocess.run([TARE, *words], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def test_it_boots_with_all_that_platforms_need_and_nothing_to_load():
    checks = "test -c /dev/kvm; iptables -t nat -L -n; test ! -e /proc/modules"
    script = f"uname -r; cat /sys/fs/cgroup/cgroup.controllers; {checks}"
    lines = done("lab", "run", "--flavour", "lines", "--", "sh", "-ec", script).splitlines()
    assert lines[0].endswith("-tare-lines")
    assert {"cpu", "cpuset", "io", "memory", "pids"} <= set(lines[1].split())


def test_lines_of_a_start_and_of_a_workload_come_back(tmp_path):
    file = tmp_path / "lines.tare"
    done(
        "footprint",
        "--level",
        "lines",
        "-p",
        "gvisor",
        "-w",
        "primes",
        "--repeats",
        "1",
        "--idle",
        "3s",
        "-o",
        str(file),
    )
    with read_store(file) as store:
        prints = list(store.footprints())
    assert {(footprint.platform, footprint.phase) for footprint in prints} == {
        (IDLE, Phase.STEADY),
        (EMPTY, Phase.STEADY),
        *((name, phase) for name in ("native", "gvisor") for phase in Phase),
    }
    assert {(footprint.level, footprint.scope) for footprint in prints} == {(Level.LINES, Scope.HOST)}
    for footprint in prints:
        assert 5_000 < len(footprint.hits) < footprint.known
        paths = {name.rpartition(":")[0] for name in footprint.hits}
        assert {"kernel/sched/core.c", "fs/open.c", "include/linux/list.h"} <= paths
    exposure = Exposure(prints)
    started = exposure.things("gvisor", View.BEYOND_IDLE, Phase.START)
    assert in_files("kernel/seccomp.c", started)
    assert not in_files("fs/debugfs/file.c", started), "the reading alone opens these files"


def in_files(prefix, lines):
    return {name for name in lines if name.startswith(prefix)}


def test_what_ran_besides_a_reading_is_counted_exactly_and_what_the_reading_ran_is_not(tmp_path):
    output = done(
        "lab", "run", "--flavour", "lines", "--out", str(tmp_path / "out"), "--", "python3", "tests/lab/lines.py"
    )
    raw = [Footprint.model_validate_json(line) for line in output.splitlines()]
    counting = kernel.ensure("lines", lambda _: None)
    prints = list(completed(raw, tmp_path / "out" / READINGS.name, counting))
    exposure = Exposure(prints)
    hits = exposure.pool("native", Scope.HOST).hits
    exact = {name for name, times in hits.items() if times == sum(ASKED)}
    assert in_files("kernel/sys.c:", exact), "the lines of getsid, which nobody else called"
    empty = [footprint for footprint in prints if footprint.platform == EMPTY]
    assert all(in_files("fs/debugfs/file.c:", footprint.hits) for footprint in empty)
    assert not in_files("fs/debugfs/file.c:", hits)
    assert in_files("fs/exec.c:", hits), "a process was started"
    assert not any(in_files("fs/exec.c:", footprint.hits) for footprint in empty)
