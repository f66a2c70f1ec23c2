import ipaddress
import os
import socket
import subprocess

import pytest

from tare.errors import PlatformError
from tare.host.network import callers
from tare.platforms import kubernetes


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")])
def test_who_calls_is_known_also_by_an_address_of_the_other_family(listener, family, address):
    with socket.socket(family) as caller:
        caller.connect((address, listener.getsockname()[1]))
        with listener.accept()[0] as connection:
            assert callers.user_of(connection) == os.geteuid()


def test_a_connection_that_was_closed_over_there_is_nobodys(listener):
    with socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
    with connection:
        assert callers.user_of(connection) is None


def test_a_process_on_the_hosts_network_and_another_instance_are_no_pods(listener):
    with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
        for subnet in ("127.0.0.0/8", "10.77.0.0/24"):
            assert not kubernetes._may_be_a_pod(ipaddress.ip_network(subnet), connection)


def test_what_calls_from_elsewhere_may_be_a_pod(listener, monkeypatch):
    monkeypatch.setattr(callers, "user_of", lambda _: None)
    with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
        assert kubernetes._may_be_a_pod(ipaddress.ip_network("10.77.0.0/24"), connection)
        assert not kubernetes._may_be_a_pod(ipaddress.ip_network("127.0.0.0/8"), connection)


def test_who_waits_for_an_agent_gives_up_where_only_others_call(listener):
    turns = []

    def turn():
        turns.append(1)
        if len(turns) == 3:
            raise PlatformError("late")

    with socket.create_connection(listener.getsockname()), pytest.raises(PlatformError):
        callers.accepted(listener, lambda _: False, turn)
    assert len(turns) == 3


@pytest.mark.host
@pytest.mark.own_host
def test_another_users_call_is_not_taken_for_an_agents(listener):
    address, port = listener.getsockname()
    program = "$| = 1; $c = IO::Socket::INET->new(shift) or die; print 1; print defined <$c> ? 'taken' : 'closed'"
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "perl", "-MIO::Socket::INET", "-e", program]
    with subprocess.Popen([*argv, f"{address}:{port}"], stdout=subprocess.PIPE) as other:
        assert other.stdout.read(1) == b"1"
        own = socket.create_connection((address, port))
        with own, callers.accepted(listener, callers.is_hosts_root, lambda: None) as connection:
            assert connection.getpeername() == own.getsockname()
        assert other.stdout.read() == b"closed"
