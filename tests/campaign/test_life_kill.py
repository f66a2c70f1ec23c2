"""SIGKILL of the harness in an operation on an instance: what stays is found and removed by `tare clean`."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from platforms_here import cannot_be
from tare.contract.leftovers import left_on_host
from tare.host import processes, state
from tare.host.resources.journal import Journal, sweep
from tare.platforms import containerd

pytestmark = [pytest.mark.host, pytest.mark.own_host]
#: To the moment of a kill: a command has begun by then, and few have ended.
MIDST_S = 0.015


OPERATIONS = ("create", "start", "execute", "pause", "stop", "remove")
CASES = (
    *(("runc", operation) for operation in OPERATIONS),
    *((name, operation) for name in ("docker", "gvisor") for operation in ("create", "start", "remove")),
    *(("gvisor", operation) for operation in ("snapshot", "restore", "burst")),
    *(("podman", operation) for operation in ("create", "remove")),
    *((name, operation) for name in ("lxc", "lxd") for operation in ("start", "remove")),
    *((name, "start") for name in ("nspawn", "charliecloud")),
    ("docker", "burst"),
    *(("runc", operation) for operation in ("resume", "kill")),
    ("gvisor", "fork"),
    ("containerd", "engine-restart"),
)
#: Their commands are killed like those above: `make slow-test`.
RELATIVES = (
    *((name, operation) for name in ("docker", "gvisor") for operation in ("execute", "pause", "stop")),
    *(("podman", operation) for operation in ("start", "execute", "pause", "stop")),
    *((name, operation) for name in ("lxc", "lxd") for operation in ("create", "execute", "pause", "stop")),
    ("nspawn", "execute"),
    *(("charliecloud", operation) for operation in ("execute", "pause")),
    *(("libvirt-qemu-tcg", operation) for operation in ("create", "pause")),
    *(("qemu-tcg", operation) for operation in ("start", "pause", "snapshot", "restore", "fork")),
    *(
        ("containerd-cri", operation)
        for operation in ("create", "start", "execute", "stop", "remove", "engine-restart")
    ),
    *(("uml", operation) for operation in ("start", "execute")),
    *(("firecracker-api", operation) for operation in ("start", "pause", "snapshot", "restore", "fork")),  # in the lab
)


@pytest.mark.parametrize(
    ("name", "operation"), [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in RELATIVES)]
)
def test_a_kill_in_an_operation_leaves_nothing_that_clean_does_not_find(name, operation):
    if name == "containerd-cri" and containerd.path_of("crictl") is None:
        pytest.skip("crictl is not installed: tare setup --with containerd-cri")
    if name.startswith("firecracker") and processes.find("firecracker") is None:
        pytest.skip("firecracker is not on PATH: no registry has it")
    if (why := cannot_be(name)) is not None:
        pytest.skip(why)
    script = Path(__file__).with_name("life_victim.py")
    argv = [sys.executable, "-P", str(script), name, operation]
    pipe = subprocess.PIPE
    victim = processes.start(argv, stdout=pipe, stderr=pipe, env=processes.own_environment())
    try:
        label, reached = (victim.stdout.readline().decode().strip() for _ in range(2))
        time.sleep(MIDST_S)
    finally:
        victim.send_signal(signal.SIGKILL)
        said = victim.communicate()[1].decode()
    assert reached == operation, said
    journal = Journal(state.journal())
    for _ in sweep(journal):
        pass
    assert [str(entry.resource) for entry in journal.entries() if entry.owner.pid == victim.pid] == []
    assert left_on_host(label) == []
