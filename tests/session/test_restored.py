"""A session goes on with an agent that was restored from a snapshot, over another stream."""

import json
import socket
import threading

from tare.session import Session, SocketStream, frames

HELLO = {
    "type": "hello", "protocol": 1, "agent": "0.1.0", "pid": 1, "clock_ns": 1, "began_ns": 1, "uptime_ns": 1,
    "userspace_ns": None, "cpus": 1, "memory_bytes": 1, "kernel": "6.1", "image": None, "beacon": None, "probes": [],
}  # fmt: skip
EXITED = {
    "type": "exited", "code": 0, "signal": None, "timed_out": False, "wall_ns": 1, "spawn_ns": 1, "user_ns": 0,
    "system_ns": 0, "max_rss_bytes": 0, "stdout_bytes": 5, "stderr_bytes": 0, "truncated": False,
}  # fmt: skip


def _message(**fields):
    return frames.encode_message(json.dumps(fields).encode())


def _answer(agent, number):
    """Play the agent for one command: its output is the first that comes."""
    agent.recv(4096)
    ends = frames.encode_data(number, frames.STDOUT, b"") + frames.encode_data(number, frames.STDERR, b"")
    agent.sendall(frames.encode_data(number, frames.STDOUT, b"here\n") + ends + _message(id=number, **EXITED))


def _executed(session, agent, number):
    playing = threading.Thread(target=_answer, args=(agent, number))
    playing.start()
    done = session.execute(["echo", "here"], time_limit_s=10)
    playing.join()
    return done.stdout


def test_a_restored_agent_says_no_hello_and_its_first_bytes_may_be_a_commands_output():
    ours, agent = socket.socketpair()
    agent.sendall(_message(**HELLO))
    with agent, Session.open(SocketStream(ours), time_limit_s=10) as former:
        assert _executed(former, agent, 1) == b"here\n"
    again, agent = socket.socketpair()
    with agent, Session.restored(SocketStream(again), former) as session:
        assert session.hello.pid == 1
        assert _executed(session, agent, 2) == b"here\n"
