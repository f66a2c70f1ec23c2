"""The kernel that counts its lines, booted: what runs on it, and footprints of lines from the command to the file."""

import subprocess
import sys
from pathlib import Path

import pytest

from tare.footprint.model import IDLE, Level, Phase, Scope
from tare.footprint.record import footprints
from tare.store import Store

pytestmark = [pytest.mark.lab, pytest.mark.host, pytest.mark.timeout(3600)]

TARE = Path(sys.executable).with_name("tare")


def done(*words):
    finished = subprocess.run([TARE, *words], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def test_it_boots_with_all_that_platforms_need_and_nothing_to_load():
    script = (
        "uname -r; cat /sys/fs/cgroup/cgroup.controllers; test -c /dev/kvm; iptables -t nat -L -n; cat /proc/modules"
    )
    said = done("lab", "run", "--flavour", "lines", "--", "sh", "-ec", script).splitlines()
    assert said[0].endswith("-tare-lines")
    assert {"cpu", "cpuset", "io", "memory", "pids"} <= set(said[1].split())


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
    with Store.read(file) as store:
        found = footprints(store)
    assert {(one.platform, one.phase) for one in found} == {
        (IDLE, Phase.STEADY),
        *((name, phase) for name in ("native", "gvisor") for phase in Phase),
    }
    assert {(one.level, one.scope) for one in found} == {(Level.LINES, Scope.HOST)}
    for one in found:
        assert 5_000 < len(one.hits) < one.known
        paths = {name.rpartition(":")[0] for name in one.hits}
        assert {"kernel/sched/core.c", "fs/open.c", "include/linux/list.h"} <= paths
    started = {one.platform: one for one in found if one.phase is Phase.START}
    assert [name for name in started["gvisor"].hits if name.startswith("kernel/seccomp.c:")]
