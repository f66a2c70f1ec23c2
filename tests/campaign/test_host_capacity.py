"""Real fills: what a host is left like after one, after Ctrl-C in one, and after SIGKILL in one."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tare.capacity_model import Resource, Stop, memory_used, read_fill
from tare.contract.leftovers import left_on_host
from tare.host import processes, state
from tare.host.resources.journal import Journal, sweep

pytestmark = [pytest.mark.host, pytest.mark.own_host]
SCRIPT = Path(__file__).with_name("capacity_victim.py")


def _started(name, most):
    argv = [sys.executable, "-P", str(SCRIPT), name, str(most)]
    pipe = subprocess.PIPE
    return processes.start(argv, stdout=pipe, stderr=pipe, env=processes.own_environment())


def _until(victim, words):
    """The lines up to the one that begins so."""
    lines = []
    for line in iter(victim.stdout.readline, b""):
        lines.append(line.decode().strip())
        if lines[-1].startswith(words):
            return lines
    raise AssertionError(f"{words!r} was never said: {lines[-3:]} {victim.stderr.read().decode()}")


def test_a_fill_of_runc_is_measured_and_leaves_nothing():
    victim = _started("runc", 24)
    said, errors = victim.communicate()
    label, *_, last = said.decode().splitlines()
    assert victim.returncode == 0, errors.decode()
    assert "runc: stopping instances, 24 left" in said.decode()
    fill = read_fill(last.encode())
    assert (fill.stop, fill.held, fill.levels[-1].count) == (Stop.MOST, 24, 24)
    before, after = fill.levels[0], fill.levels[-1]
    assert after.used[Resource.BRIDGE_PORTS] - before.used[Resource.BRIDGE_PORTS] == 24
    assert len(fill.own) == 24
    assert all(50_000 < own < 20 << 20 for own in fill.own), "an idle agent has some 200 KiB of its own"
    assert 24 * 100_000 < memory_used(before, after) < 24 * (20 << 20)
    assert left_on_host(label) == []


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_fill_that_is_ended_leaves_nothing_that_clean_does_not_find(end):
    victim = _started("runc", 40)
    try:
        [label] = _until(victim, "")
        _until(victim, "runc: 6 of")
    finally:
        victim.send_signal(end)
        said, errors = victim.communicate()
    if end is signal.SIGINT:
        assert b"KeyboardInterrupt" in errors
    else:
        assert victim.returncode == -signal.SIGKILL
        assert left_on_host(label), "the kill came while instances ran"
        journal = Journal(state.journal())
        for _ in sweep(journal):
            pass
        assert [str(entry.resource) for entry in journal.entries() if entry.owner.pid == victim.pid] == []
    assert left_on_host(label) == [], said.decode()[-200:]
