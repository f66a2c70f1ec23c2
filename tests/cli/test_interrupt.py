"""Ctrl-C and SIGTERM in the middle of a campaign: torn down, kept, and resumable."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from tare.cli.watchers import FIRST_INTERRUPT
from tare.errors import StoreError
from tare.host import processes, state
from tare.host.resources.journal import Journal
from tare.store import read_store

pytestmark = [pytest.mark.host, pytest.mark.own_host]

MAIN = "from tare.cli import main; main()"
BLOCKS = 2


def _done(file):
    with contextlib.suppress(StoreError), read_store(file) as store:  # it may not have its tables yet
        return store.done()
    return set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_made_is_removed_and_what_was_measured_is_kept(tmp_path, number):
    file = tmp_path / "cut.tare"
    arguments = ["run", "-p", "runc", "-p", "docker", "-w", "startup", "-w", "primes", "--blocks", str(BLOCKS)]
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments, "-o", str(file)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    while not file.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    while not _done(file):  # on a busy machine the first start takes its time
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    time.sleep(1.0)  # in the middle of what follows
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert b"interrupted" in errors
    assert (FIRST_INTERRUPT.encode() in errors) == (number == signal.SIGINT)
    assert f"to continue: tare run --resume {file}".encode() in errors
    assert b"Traceback" not in errors
    assert Journal(state.journal()).entries() == []
    assert "tare" not in processes.run(["ip", "-o", "link"]).text
    with read_store(file) as store:
        kept = store.done()
        assert kept
        assert store.status == "interrupted"
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "run", "--resume", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with read_store(file) as store:
        assert len(store.done()) == BLOCKS * 4 * 2
        assert kept <= store.done()
        assert store.status == "complete"


RUN = ["run", "-p", "runc", "-w", "primes", "--blocks", "2"]


def _complete(file):
    with read_store(file) as store:
        return store.status == "complete"


def _left():
    return [str(entry.resource) for entry in Journal(state.journal()).entries()], [
        line for line in processes.run(["ip", "-o", "link"]).text.splitlines() if "tare" in line
    ]


@pytest.mark.parametrize("lines", [1, 7])
def test_a_campaign_goes_on_when_the_reader_of_its_progress_leaves(tmp_path, lines):
    file = tmp_path / "unseen.tare"
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *RUN, "-o", str(file)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    for _ in range(lines):
        process.stdout.readline()
    process.stdout.close()
    assert process.wait(120) == 141
    assert _complete(file)
    assert _left() == ([], [])


@pytest.mark.parametrize("name", ["SIGHUP", "SIGCHLD"])
def test_a_campaign_is_complete_whatever_signal_its_parent_ignores(tmp_path, name):
    file = tmp_path / "nohup.tare"
    process = subprocess.Popen(
        ["env", f"--ignore-signal={name}", sys.executable, "-c", MAIN, *RUN, "-o", str(file)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    while not file.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    process.send_signal(signal.Signals[name])
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 0, errors
    assert _complete(file)
    assert _left() == ([], [])


def test_a_terminal_that_hangs_up_interrupts_a_campaign(tmp_path):
    file = tmp_path / "hung-up.tare"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", sys.executable, "-c", MAIN, *RUN[:-1], "9", "-o", str(file)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    while not (file.exists() and _done(file)):
        assert process.poll() is None
        if select.select([ours], [], [], 0.1)[0]:
            os.read(ours, 65_536)
    os.close(ours)
    assert process.wait(60) == 130
    assert not _complete(file)
    assert _left() == ([], [])
