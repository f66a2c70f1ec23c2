"""What a campaign could not remove from the host is in its file and on standard error, and stays for `tare clean`."""

import json
import os
import sys
from pathlib import Path

import pytest

from hostile import TREE
from tare.host import processes, state
from tare.host.resources import removers
from tare.host.resources.journal import Journal
from tare.store import read_store

pytestmark = [pytest.mark.host, pytest.mark.own_host]

KILLED = """\
import os, signal, sys
from tare.campaign.host_session import HostSession, default_cpus
from tare.model import Arm, Resources
from tare.platforms import platform_registry

with HostSession() as host:
    launcher, _ = host.prepare(host.image(), Resources(default_cpus(), 512 << 20))
    live = launcher.start(platform_registry.choose(["runc"])[0], Arm("runc"), measured=False)
    assert live.session.execute(["sh", "-c", sys.argv[1]], time_limit_s=60).code == 0
    os.kill(os.getpid(), signal.SIGKILL)
"""
MAIN = "from tare.cli import main; main()"


def tare(*words):
    return processes.run([sys.executable, "-P", "-c", MAIN, *words], time_limit_s=150, env=processes.own_environment())


@pytest.mark.timeout(170)
def test_what_a_killed_run_left_and_nobody_can_remove_is_told(tmp_path):
    folder = state.work() / f"stays{os.getpid()}"
    folder.mkdir()
    [entry] = Journal(state.journal()).write(removers.file(folder))  # no file: it cannot be removed as one
    record = json.loads(entry.file.read_text())
    record["owner"]["pid"] = 1 << 22  # nobody's
    entry.file.write_text(json.dumps(record))
    try:
        done = tare("run", "-p", "native", "-w", "primes", "--blocks", "1", "-o", str(tmp_path / "x.tare"))
        assert done.code == 0, done.stderr
        errors = done.stderr.decode()
        assert errors.count(f"left on this host: file {folder} (") == 1
        assert errors.count("\nfix: `tare clean` tries again") == 1
        with read_store(tmp_path / "x.tare") as store:
            [warning] = [event.text for event in store.events() if f"file {folder}" in event.text]
        assert warning.startswith("left on this host")
        assert entry.file.exists()
        folder.rmdir()
        cleaned = tare("clean")
        assert f"removed file {folder}" in cleaned.text
    finally:
        entry.file.unlink(missing_ok=True)


@pytest.mark.timeout(170)
def test_tare_clean_removes_what_a_killed_run_s_sandbox_made():
    """A run in a process of its own: its sandbox nests 1,500 folders, then it is killed without a word."""
    killed = processes.run(
        [sys.executable, "-P", "-c", KILLED, TREE], time_limit_s=120, env=processes.own_environment()
    )
    assert killed.code == -9, killed.stderr
    left = [entry.resource for entry in Journal(state.journal()).entries()]
    folders = [str(resource.facts["path"]) for resource in left if resource.kind == "folder"]
    assert [folder for folder in folders if Path(folder, "data/d/d/d").exists()]
    cleaned = tare("clean")
    assert cleaned.code == 0, cleaned.stdout + cleaned.stderr
    assert not [folder for folder in folders if Path(folder).exists()]
    assert Journal(state.journal()).entries() == []
