"""While a campaign runs, no thread of tare's is on a measured CPU, and all that it starts is where it was before."""

import contextlib
import os
import pty
import re
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tare.errors import StoreError
from tare.host import cgroup, processes
from tare.model import Arm
from tare.platforms import platform_registry
from tare.store import read_store

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="with one CPU there is no other to be on"),
]

MAIN = "from tare.cli import main; main()"


def cpus_of(tasks):
    """The CPUs of each task that is still there, as /proc says them: pid or thread, name, list."""
    for task in tasks:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = (task / "status").read_text()
            name, cpus = re.search(r"Name:\t(.*)", status)[1], re.search(r"Cpus_allowed_list:\t(.*)", status)[1]
            yield int(task.name), name, cpus


def listed(cpus):
    """The CPUs of a list such as 0-2,5."""
    spans = [span.split("-") for span in cpus.split(",")]
    return {cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)}


def measuring(file):
    with contextlib.suppress(StoreError), read_store(file) as store:
        return bool(store.done()) and store.status == "running"
    return False


@pytest.mark.timeout(170)
def test_all_threads_are_off_the_measured_cpus_and_instances_on_them(tmp_path):
    measured, file = max(os.sched_getaffinity(0)), tmp_path / "x.tare"
    argv = [sys.executable, "-P", "-c", MAIN, "run", "-p", "native", "-w", "primes", "--blocks", "3", "-o", str(file)]
    terminal, theirs = pty.openpty()  # so that it draws, by a thread of its own
    own = processes.own_environment()
    process = processes.start([*argv, "--cpus", str(measured)], stdin=theirs, stdout=theirs, stderr=theirs, env=own)
    os.close(theirs)
    main, others_own, inside = Counter(), set(), set()
    try:
        os.set_blocking(terminal, False)
        while process.poll() is None:
            with contextlib.suppress(BlockingIOError, OSError):
                os.read(terminal, 1 << 16)
            if measuring(file):
                tasks = list(Path(f"/proc/{process.pid}/task").iterdir())
                for thread, _, cpus in cpus_of(tasks):
                    if thread == process.pid:
                        main[cpus] += 1
                    else:
                        others_own.add((thread, cpus))
                agents = [Path("/proc", str(pid)) for pid in cgroup.Group("tare").pids()]
                inside |= {cpus for _, name, cpus in cpus_of(agents) if name == "tare-agent"}
            time.sleep(0.05)
    finally:
        processes.kill_group(process)
        process.wait()
        os.close(terminal)
    assert process.returncode == 0
    assert len({thread for thread, _ in others_own}) >= 2, "the display's and the telemetry's"
    assert not [cpus for _, cpus in others_own if measured in listed(cpus)]
    # The main thread is where its children are to be just while it starts one.
    on_measured = sum(count for cpus, count in main.items() if measured in listed(cpus))
    assert on_measured <= 0.2 * main.total()
    assert inside == {str(measured)}


def test_a_child_inherits_nothing_of_it(prepared):
    launcher, client = prepared
    harness = launcher.host_cpus.harness
    everywhere = set(harness) | set(launcher.resources.cpus)
    argv = [sys.executable, "-P", "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
    assert os.sched_getaffinity(0) == set(harness)
    assert launcher.resources.probe_cpu not in harness
    assert processes.run(argv).text.strip() == str(sorted(everywhere))
    [platform] = platform_registry.choose(["native"])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm("native"), measured=False)
    try:
        inside = running.session.execute(["grep", "Cpus_allowed_list", "/proc/self/status"]).stdout.split()[1].decode()
        assert listed(inside) == set(launcher.resources.cpus)
    finally:
        running.stop()
    allowed = client.run(["grep", "Cpus_allowed_list", "/proc/self/status"], time_limit_s=10).text.split()[1]
    assert listed(allowed) == set(launcher.host_cpus.client)
