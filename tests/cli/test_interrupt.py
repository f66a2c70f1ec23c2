"""Ctrl-C and SIGTERM in the middle of a campaign: torn down, kept, and resumable."""

import contextlib
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
    assert f"to go on: tare run --resume {file}".encode() in errors
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
