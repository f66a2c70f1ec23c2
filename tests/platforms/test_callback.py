"""What machines have in common whose agent connects to the host: real sockets, and `sleep` in the monitor's place."""

import socket
from types import SimpleNamespace

import pytest

from tare.errors import PlatformError
from tare.host import processes
from tare.platforms.base import Instant
from tare.platforms.parts.common.callback import StartedMachine, come_up

SPEC = SimpleNamespace(measured=False, start_limit_s=0.3, port=20_100)


@pytest.fixture
def monitor():
    process = processes.start(["sleep", "60"])
    yield process
    processes.end(process)


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def _begun(monitor, ended):
    return StartedMachine(Instant.now(), monitor, "Monitor", off=lambda: ended.append("off"))


def test_the_agents_connection_is_the_instances_stream_and_closing_it_ends_the_machine(monitor, listener):
    ended = []
    with socket.create_connection(listener.getsockname()) as agent:
        instance = come_up(SPEC, listener, _begun(monitor, ended), "10.77.0.9", peer="127.0.0.1")
        agent.sendall(b".")
        assert instance.first_byte.wait(5) is not None
        assert (instance.address.host, instance.address.ping, instance.address.port) == (
            "10.77.0.9",
            "10.77.0.9",
            20_100,
        )
        assert ended == []
        instance.stream.close()
    assert ended == ["off"]
    assert monitor.poll() is not None


def test_a_machine_whose_agent_does_not_come_is_ended(monitor, listener):
    ended = []
    with pytest.raises(PlatformError, match=r"the agent of Monitor's guest did not connect"):
        come_up(SPEC, listener, _begun(monitor, ended), "10.77.0.9")
    assert ended == ["off"]
    assert monitor.poll() is not None


def test_a_machine_that_cannot_be_told_is_ended_and_its_agent_not_waited_for(monitor, listener):
    ended = []

    def tell():
        raise PlatformError("its API refuses")

    with pytest.raises(PlatformError, match="its API refuses"):
        come_up(SPEC, listener, _begun(monitor, ended), "10.77.0.9", tell=tell)
    assert ended == ["off"]
    assert monitor.poll() is not None
