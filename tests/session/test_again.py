"""An agent that connects again when its connection has ended, as a snapshot of its machine ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tare.host import processes
from tare.session import Session, SocketStream


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        yield listener


@pytest.fixture
def connect(agent_binary: Path, listener: socket.socket) -> Iterator[object]:
    """Start an agent, and return its connection; later calls return its next connections."""
    port = listener.getsockname()[1]
    process = processes.start([str(agent_binary), "serve", "--again", "--host", f"tcp:127.0.0.1:{port}"])
    try:
        yield lambda: SocketStream(listener.accept()[0])
    finally:
        programs = processes.children(process.pid)
        processes.kill_group(process)
        process.wait()
        for pid in programs:  # each in a group of its own: they would outlive their agent
            with contextlib.suppress(ProcessLookupError):
                os.killpg(os.getpgid(pid), signal.SIGKILL)


def test_an_agent_connects_again_and_its_programs_go_on(connect) -> None:
    former = Session.open(connect(), 10)
    program = former.start(["sh", "-c", "echo up; sleep 1000; exit"], time_limit_s=60)
    program.wait_output(b"up", 10)
    former.close()
    with Session.restored(connect(), former) as session:
        assert session.hello.pid == former.hello.pid
        assert session.execute(["pgrep", "-P", str(session.hello.pid), "-x", "sh"]).code == 0


def test_an_answer_cut_off_halfway_is_forgotten(connect) -> None:
    former = Session.open(connect(), 10)
    program = former.start(["sh", "-c", "head -c 30000000 /dev/zero; exec sleep 1000"], output_cap=1 << 26)
    program.wait_output(b"\0", 10)
    former.close()  # long before all of it was read
    with Session.restored(connect(), former) as session:
        assert session.execute(["echo", "here"]).stdout == b"here\n"


def test_a_reset_connection_is_made_again(connect, listener) -> None:
    stream = connect()
    former = Session.open(stream, 10)
    # Without lingering, closing a TCP connection resets it.
    stream._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    former.close()
    with Session.restored(connect(), former) as session:
        assert session.execute(["echo", "here"]).stdout == b"here\n"


def test_a_shutdown_ends_an_agent_that_would_connect_again(connect, listener) -> None:
    with Session.open(connect(), 10) as session:
        session.shutdown()
    listener.settimeout(0.2)
    with pytest.raises(TimeoutError):
        listener.accept()
