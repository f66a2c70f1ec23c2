"""SIGKILL of a whole campaign at random moments, and resuming: nothing is lost, nothing doubled, nothing left."""

import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from tare.host import cgroup, processes, state
from tare.host.resources.journal import Journal, sweep
from tare.image import image_build
from tare.platforms import platform_registry
from tare.store import read_store

pytestmark = [pytest.mark.host, pytest.mark.own_host]

#: So many come at once: within a time from the start of the command in which there is no file yet on any host.
AT_ONCE, AT_ONCE_S = 3, 1.0
#: Of the others every third comes so long after one to so many more trials were written, the rest while the campaign is
#: set up again, however long that takes on this host.
MAX_TRIALS, AFTER_A_TRIAL_S = 3, 0.5
#: By then a campaign has written its next trial, on any host.
PROGRESS_LIMIT_S = 120.0
#: The command, with trials of files that are over in a fraction of a second: what is killed here is the harness.
MAIN = """
from tare.cli import main
from tare.workloads import workload_registry
workload_registry.get("sysbench-fileio-seqrd").profiles["quick"].update(total_mib=8, least_mib=4, rounds=1)
main()
"""
PLAN = ("-p", "runc", "-p", "docker", "-p", "gvisor", "-w", "startup", "-w", "primes", "-w", "sysbench-fileio-seqrd")
BLOCKS, TRIALS = 3, 3 * 5 * 3  # of five arms and three workloads


def _command(*arguments):
    return [sys.executable, "-c", MAIN, "run", *arguments]


def _rows(file):
    with read_store(file) as store:
        trials, samples = store.trials(), store.samples()
        return {
            (row["block"], row["workload"], row["platform"], row["replica"]): (row["seq"], row["started"])
            for row in trials.iter_rows(named=True)
        }, samples.height


def _written(file):
    """How many trials a file has by now; None while there is none."""
    if not file.exists():
        return None
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as store:
        try:
            return store.execute("SELECT count(*) FROM trial").fetchone()[0]
        except sqlite3.OperationalError:  # its tables are not there yet
            return None


def _until(process, arrived, limit_s):
    """Wait until it has arrived at something or has ended, at most so long; whether so, and how long that took."""
    began = time.monotonic()
    while not arrived() and process.poll() is None:
        if time.monotonic() - began > limit_s:
            return False, limit_s
        time.sleep(0.05)
    return True, time.monotonic() - began


def _kill(file, until):
    """Start or resume the campaign and kill it when ``until`` has waited; whether it had not ended by then."""
    arguments = ("--resume", str(file)) if file.exists() else (*PLAN, "--blocks", str(BLOCKS), "-o", str(file))
    process = subprocess.Popen(_command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        until(process)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert process.returncode in {-signal.SIGKILL, 0}, errors
    return process.returncode != 0


@pytest.mark.timeout(900)
@pytest.mark.parametrize("n_kills", [12, pytest.param(20, marks=pytest.mark.slow)])
def test_a_campaign_survives_kills(tmp_path, n_kills):
    # What is made once a host takes longer than any of these runs lives.
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    for platform in platform_registry.choose(["runc", "docker", "gvisor"]):
        platform.prepare(image)
        platform.close()
    moments = random.Random(20)
    files = (tmp_path / f"killed{number}.tare" for number in range(n_kills))
    file = next(files)
    before: dict = {}
    set_up_s = PROGRESS_LIMIT_S
    kills = kept = 0

    def at_once(_):
        time.sleep(moments.uniform(0.2, AT_ONCE_S))

    def in_set_up(process):
        more = len(before) + 1
        _until(process, lambda: (_written(file) or 0) >= more, moments.uniform(0.1, set_up_s))

    def in_trials(process):
        nonlocal set_up_s
        first, last = len(before) + 1, len(before) + moments.randint(1, MAX_TRIALS)
        came, set_up_s = _until(process, lambda: (_written(file) or 0) >= first, PROGRESS_LIMIT_S)
        assert came, "no trial was written"
        came, _ = _until(process, lambda: (_written(file) or 0) >= last, PROGRESS_LIMIT_S)
        assert came, "no trial was written"
        time.sleep(moments.uniform(0, AFTER_A_TRIAL_S))

    while kills < n_kills:
        kills += _kill(file, at_once if kills < AT_ONCE else in_trials if (kills - AT_ONCE) % 3 == 0 else in_set_up)
        if file.exists():
            rows, _ = _rows(file)
            assert {key: rows.get(key) for key in before} == before, "a trial was lost or done again"
            kept += bool(before)
            before = rows
        if len(before) == TRIALS:
            file, before = next(files), {}
    assert kept > n_kills // 2, "hardly any kill could have lost a trial"
    if not file.exists():
        assert _kill(file, in_trials)
        before, _ = _rows(file)
    done = subprocess.run(_command("--resume", str(file)), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows, samples = _rows(file)
    assert {key: rows[key] for key in before} == before
    assert len(rows) == TRIALS
    assert len({seq for seq, _ in rows.values()}) == len(rows)
    assert samples > len(rows)
    for step in sweep(Journal(state.journal())):
        assert step.kept is None
    assert not [root for root in cgroup.hierarchies().mounted if (root / "tare").exists()]
    assert not list(state.work().iterdir())
    assert "tare" not in processes.run(["ip", "-o", "link"]).text
    assert processes.run(["ip", "netns"]).text == ""
    assert "tare" not in processes.run(["iptables", "-w", "-S"]).text
    assert processes.run(["docker", "ps", "-aq", "--filter", "label=tare"]).text == ""
