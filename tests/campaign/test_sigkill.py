"""SIGKILL of a whole campaign at random moments, and resuming: nothing is lost, nothing doubled, nothing left."""

import random
import signal
import subprocess
import sys
import time

import pytest

from tare.host import cgroup, processes, state
from tare.host.journal import Journal, sweep
from tare.image import build
from tare.platforms import registry
from tare.store import read_store

pytestmark = pytest.mark.host

KILLS = 20
#: The time from the start of the command within which it is killed: set-up, starts, slices and runs are all in it.
WINDOW_S = 7.0
MAIN = "from tare.cli import main; main()"
PLAN = ("-p", "runc", "-p", "docker", "-p", "gvisor", "-w", "startup", "-w", "primes", "-w", "sysbench-fileio-seqrd")
BLOCKS, ARMS, WORKLOADS = 5, 5, 3


def _command(*arguments):
    return [sys.executable, "-c", MAIN, "run", *arguments]


def _rows(file):
    with read_store(file) as store:
        trials, samples = store.trials(), store.samples()
        return {
            (row["block"], row["workload"], row["platform"], row["replica"]): (row["seq"], row["started"])
            for row in trials.iter_rows(named=True)
        }, samples.height


@pytest.mark.timeout(900)
def test_a_campaign_survives_twenty_kills(tmp_path):
    # What is made once a host takes longer than any of these runs lives.
    image = build.ensure(build.agent_path(), progress=lambda _: None)
    for platform in registry.choose(["runc", "docker", "gvisor"]):
        platform.prepare(image)
        platform.close()
    moments = random.Random(20)
    file = tmp_path / "killed.tare"
    before: dict = {}
    kills = 0
    while kills < KILLS:
        arguments = ("--resume", str(file)) if file.exists() else (*PLAN, "--blocks", str(BLOCKS), "-o", str(file))
        process = subprocess.Popen(_command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(moments.uniform(0.2, WINDOW_S))
        process.send_signal(signal.SIGKILL)
        process.wait()
        said = process.stderr.read().decode()
        process.stderr.close()
        assert process.returncode in {-signal.SIGKILL, 0}, said
        kills += 1
        if file.exists():
            rows, _ = _rows(file)
            assert {key: rows.get(key) for key in before} == before, "a trial was lost or done again"
            before = rows
    done = subprocess.run(_command("--resume", str(file)), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows, samples = _rows(file)
    assert {key: rows[key] for key in before} == before
    assert len(rows) == BLOCKS * ARMS * WORKLOADS
    assert len({seq for seq, _ in rows.values()}) == len(rows)
    assert samples > len(rows)
    for step in sweep(Journal(state.journal())):
        assert step.kept is None
    assert not [root for root in cgroup.hierarchies().every if (root / "tare").exists()]
    assert not list(state.work().iterdir())
    assert "tare" not in processes.run(["ip", "-o", "link"]).text
    assert processes.run(["ip", "netns"]).text == ""
    assert "tare" not in processes.run(["iptables", "-w", "-S"]).text
    assert processes.run(["docker", "ps", "-aq", "--filter", "label=tare"]).text == ""
