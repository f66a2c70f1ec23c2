"""A Docker daemon of tare's own: its settings, what it leaves, and that a kill leaves nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tare.errors import HostError
from tare.host import own_dockerd
from tare.host.daemons import runtimes
from tare.host.daemons.dockerd_traces import Traces
from tare.host.resources import removers
from tare.host.resources.claims import Bounds, fault
from tare.host.resources.resource import HostResource

BEFORE = Traces(False, False, "0", "ACCEPT", frozenset({"/var/lib/docker"}))
#: No /run/docker.sock and no docker0 of another's: those of the namespaces that this is in.
APART = """\
mount -t tmpfs none /run && mkdir /run/lock && mount -t tmpfs none /var/lib/docker && ip link set lo up
exec "$@"
"""
VICTIM = """\
import json, os, signal
from tare.host import own_dockerd
from tare.host.daemons.dockerd_traces import Traces
from tare.host.kernel.links import links
print(json.dumps(Traces.read().facts()))
with own_dockerd.started():
    print("docker0" in links(), flush=True)
    {ends}
"""
SWEEP = """\
import json
from tare.host import state
from tare.host.daemons import dockerd
from tare.host.daemons.dockerd_traces import Traces
from tare.host.resources.journal import Journal, sweep
for step in sweep(Journal(state.journal())):
    assert step.kept is None, step
print(json.dumps(Traces.read().facts()))
print(dockerd.listens(""))
print(len(Journal(state.journal()).entries()))
"""


def test_what_there_was_goes_through_the_journal():
    assert Traces.of(BEFORE.facts()) == BEFORE
    entry = removers.dockerd_traces(BEFORE)
    assert fault(entry, Bounds(Path("/home/tare"))) is None
    elsewhere = HostResource(entry.kind, {**entry.facts, "mounts": ["/etc"]})
    assert "mounts" in fault(elsewhere, Bounds(Path("/home/tare")))


def test_after_a_reboot_nothing_is_given_back(monkeypatch):
    monkeypatch.setattr(Traces, "restore", lambda *_: pytest.fail("of another boot"))
    entry = removers.dockerd_traces(BEFORE)
    removers.remove(HostResource(entry.kind, {**entry.facts, "boot": "0" * 8}))


def test_its_settings_are_the_users_with_crun_and_gvisors_runtimes_besides(monkeypatch, tmp_path):
    users = tmp_path / "daemon.json"
    users.write_text(json.dumps({"debug": True, "runtimes": {"mine": {"path": "/opt/mine"}}}))
    monkeypatch.setattr(own_dockerd, "USERS_CONFIG", users)
    monkeypatch.setattr(runtimes, "find", {"runsc": "/opt/runsc"}.get)
    monkeypatch.setattr(own_dockerd.processes, "find", {}.get)
    settings = own_dockerd.configuration()
    assert settings["debug"] is True
    assert settings["runtimes"] == {
        "mine": {"path": "/opt/mine"},
        "runsc": {"path": "/opt/runsc"},
        "runsc-ptrace": {"path": "/opt/runsc", "runtimeArgs": ["--platform=ptrace"]},
        "runsc-host": {"path": "/opt/runsc", "runtimeArgs": ["--network=host"]},
    }
    users.write_text("{")
    with pytest.raises(HostError, match="is not JSON"):
        own_dockerd.configuration()


def test_without_dockerd_or_root_it_says_what_helps(monkeypatch):
    monkeypatch.setattr(own_dockerd.processes, "find", {}.get)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(HostError, match="dockerd is not installed") as error, own_dockerd.started():
        pass
    assert "docker.io" in error.value.fix
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostError, match="takes root"), own_dockerd.started():
        pass


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize("ends", ["pass", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_nothing_of_it_stays_after_its_end_or_a_kill_and_clean(ends, tmp_path):
    python = f"{sys.executable} -P -c"
    script = f"{python} '{VICTIM.format(ends=ends)}'; {python} '{SWEEP}'"
    argv = ["unshare", "--mount", "--net", "sh", "-ec", APART, "sh", "sh", "-c", script]
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DOCKER_")}
    done = subprocess.run(
        argv, env={**environment, "TARE_HOME": str(home)}, capture_output=True, text=True, check=False, timeout=120
    )
    before, had_its_bridge, after, listens, entries = done.stdout.splitlines()
    assert had_its_bridge == "True", done.stderr
    assert (listens, entries) == ("False", "0"), done.stderr
    before, after = json.loads(before), json.loads(after)
    assert set(after.pop("mounts")) <= set(before.pop("mounts"))  # of what lies below the new /run, some may go
    assert after == before
