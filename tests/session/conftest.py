"""The real agent over pipes, and a hostile one that says what a test wants."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agents import RunningAgent

from tare.host import processes
from tare.session import PipeStream, Session

AGENT_FOLDER = Path(__file__).parents[2] / "agent"


@pytest.fixture(scope="session")
def agent_binary() -> Path:
    """The agent, built as the image builds it."""
    # Cargo reads agent/.cargo only when it starts there.
    processes.run(
        ["cargo", "build", "--release"], cwd=AGENT_FOLDER, env=processes.kept(*processes.BUILDS), time_limit_s=600
    ).require()
    return AGENT_FOLDER / "target" / "release" / "tare-agent"


@pytest.fixture
def run_agent(agent_binary: Path) -> Iterator[Callable[..., RunningAgent]]:
    """Starts agents, and ends them with the test."""
    running: list[RunningAgent] = []

    def start(*options: str) -> RunningAgent:
        running.append(RunningAgent(agent_binary, *options))
        return running[-1]

    yield start
    for agent in running:
        agent.end()


@pytest.fixture
def session(run_agent: Callable[..., RunningAgent]) -> Session:
    """A session with a real agent."""
    return Session.open(run_agent().stream, 10)


@pytest.fixture
def liar() -> Iterator[Callable[[Callable[[int, int], None]], PipeStream]]:
    """Starts an "agent" that is a function of the descriptors it reads from and writes to, in a thread."""
    threads: list[threading.Thread] = []
    streams: list[PipeStream] = []

    def start(lie: Callable[[int, int], None]) -> PipeStream:
        from_host, to_liar = os.pipe()
        to_host, from_liar = os.pipe()
        streams.append(PipeStream(to_host, to_liar))

        def run() -> None:
            try:
                lie(from_host, from_liar)
            except BrokenPipeError:
                pass  # the host has had enough
            finally:
                os.close(from_liar)
                os.close(from_host)

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return streams[-1]

    yield start
    for stream in streams:
        stream.close()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
