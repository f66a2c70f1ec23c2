"""The agent as PID 1, in namespaces of its own (their end undoes all that it mounts)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agents import RunningAgent

from tare.session import Session

pytestmark = pytest.mark.host

NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]


@pytest.fixture
def start_as_init(agent_binary: Path, tmp_path: Path) -> Iterator[Callable[..., RunningAgent]]:
    """Starts the agent in a root that holds nothing but the agent."""
    shutil.copy(agent_binary, tmp_path / "tare-agent")
    running: list[RunningAgent] = []

    def start(*options: str) -> RunningAgent:
        within = [*NAMESPACES, "chroot", str(tmp_path)]
        running.append(RunningAgent(Path("/tare-agent"), *options, within=within))
        return running[-1]

    yield start
    for agent in running:
        agent.end()


def test_it_makes_a_bare_root_a_system_and_switches_it_off(start_as_init: Callable[..., RunningAgent]) -> None:
    agent = start_as_init("--init")
    session = Session.open(agent.stream, 10)
    assert session.hello.pid == 1
    mounts = dict(line.split()[1:3] for line in session.get("/proc/self/mounts", 1 << 16).decode().splitlines())
    assert (mounts["/proc"], mounts["/sys"], mounts["/dev"], mounts["/tmp"]) == ("proc", "sysfs", "devtmpfs", "tmpfs")
    assert session.execute(["/tare-agent", "version"]).code == 0
    session.shutdown()
    # In a PID namespace, switching off ends it (reboot(2)), by a signal to its first process.
    assert agent.process.wait(10) != 0


def test_without_init_it_mounts_nothing_and_ends_as_a_program(start_as_init: Callable[..., RunningAgent]) -> None:
    agent = start_as_init()
    session = Session.open(agent.stream, 10)
    assert session.hello.pid == 1
    assert session.execute(["/tare-agent", "version"], cwd="/").code == 0
    session.shutdown()
    assert agent.process.wait(10) == 0


def test_as_pid_1_it_reaps_orphans(agent_binary: Path, tmp_path: Path) -> None:
    agent = RunningAgent(agent_binary, within=[*NAMESPACES, "--mount-proc"])
    try:
        session = Session.open(agent.stream, 10)
        mark = tmp_path / "mark"
        child = f"echo $$ >{mark}.new; mv {mark}.new {mark}; exec sleep 0.05"
        assert session.execute(["sh", "-c", f"setsid sh -c '{child}' & while ! test -e {mark}; do :; done"]).code == 0
        deadline = time.monotonic() + 5
        while session.execute(["test", "-e", f"/proc/{mark.read_text().strip()}"]).code == 0:
            assert time.monotonic() < deadline
    finally:
        agent.end()
