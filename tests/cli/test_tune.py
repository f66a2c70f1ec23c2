"""`tare run --tune` on this host: set meanwhile, given back at a signal, by `tare clean`, by the next run."""

import contextlib
import signal
import subprocess
import sys
import time

import pytest

from tare.errors import StoreError
from tare.host import state
from tare.host.resources.journal import Journal, sweep
from tare.host.tuning import tune
from tare.store import read_store

pytestmark = pytest.mark.host

MAIN = "from tare.cli import main; main()"
PLAN = ("run", "-p", "native", "-w", "primes", "--blocks", "2", "--tune")


@pytest.fixture
def before():
    """The settings of this host, which must be the same afterwards."""
    settings = tune.look()
    yield settings
    for _ in sweep(Journal(state.journal())):  # a test that failed must not leave them set
        pass
    assert tune.look() == settings


def _journaled():
    return [entry for entry in Journal(state.journal()).entries() if entry.resource.kind == "setting"]


@contextlib.contextmanager
def _measuring(file):
    """A run that has begun to measure; it has ended afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *PLAN, "-o", str(file)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    try:
        while not _begun(file):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.communicate()


def _begun(file):
    with contextlib.suppress(StoreError), read_store(file) as store:  # it is being made
        return store.status == "running"
    return False


def _set(before, file):
    """Which settings the campaign says that it changed; each is really so now."""
    with read_store(file) as store:
        changed = {setting.path: setting for setting in store.record.tuning if setting.outcome == "changed"}
    now = tune.look()
    assert changed, "nothing can be set here: the test would show nothing"
    assert {path: now[path] for path in changed} == {path: setting.value for path, setting in changed.items()}
    assert {path: before[path] for path in changed} == {path: setting.former for path, setting in changed.items()}
    return changed


def test_sigterm_gives_all_settings_back(tare, tmp_path, before):
    file = tmp_path / "cut.tare"
    with _measuring(file) as process:
        _set(before, file)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
    assert process.returncode == 130
    assert tune.look() == before
    assert _journaled() == []


@pytest.mark.parametrize("how", ["clean", "resume"])
def test_after_sigkill_the_next_command_gives_all_settings_back(tare, tmp_path, before, how):
    file = tmp_path / "cut.tare"
    with _measuring(file):
        changed = _set(before, file)
    assert set(_set(before, file)) == set(changed)  # they are still so
    if how == "clean":
        done = tare("clean")
        for path, setting in changed.items():
            assert f"removed setting /{path} {setting.former}" in done.stdout
        assert "kept setting" not in done.stdout
    else:
        done = tare("run", "--resume", str(file))  # which sets them again meanwhile, and from what they were
        assert done.returncode == 0, done.stderr
        with read_store(file) as store:
            assert [event.text for event in store.events() if event.level == "warning"] == []
            assert store.status == "complete"
    assert tune.look() == before
    assert _journaled() == []


def test_without_it_nothing_is_set(tare, tmp_path, before):
    file = tmp_path / "plain.tare"
    done = tare("run", "-p", "native", "-w", "primes", "--blocks", "1", "-o", str(file))
    assert done.returncode == 0, done.stderr
    with read_store(file) as store:
        assert store.record.tuning is None
        assert store.telemetry().host.height > 2
        instances = store.telemetry().instances
        assert {(name, replica) for name, replica in instances.select("platform", "replica").unique().iter_rows()} == {
            ("native", 0),
            ("native", 1),
        }
