"""An agent whose host is not at its stdin and stdout."""

from __future__ import annotations

import socket
from pathlib import Path

from tare.host import processes
from tare.session import Session, SocketStream


def test_it_connects_to_a_host_that_listens(agent_binary: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        port = listener.getsockname()[1]
        process = processes.start([str(agent_binary), "serve", "--host", f"tcp:127.0.0.1:{port}"])
        try:
            connection, _ = listener.accept()
            with Session.open(SocketStream(connection), 10) as session:
                assert session.hello.pid == process.pid
                echoed = session.execute(["cat"], stdin=bytes(range(256)) * 1000)
                assert echoed.stdout == bytes(range(256)) * 1000
            assert process.wait(10) == 0
        finally:
            processes.kill_group(process)
            process.wait()


def test_a_host_that_is_not_there_ends_it_with_one_line(agent_binary: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    done = processes.run([str(agent_binary), "serve", "--host", f"tcp:127.0.0.1:{port}"], time_limit_s=10)
    assert done.code == 1
    assert done.stdout == b""
    assert f"127.0.0.1:{port}" in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
