import ipaddress
import socket

import pytest

from tare.errors import HostError
from tare.host.network import bridge, fence

ROUTES = """[{"dst":"default","gateway":"192.0.2.1","dev":"eth0","flags":[]},
{"dst":"10.77.0.0/16","dev":"vpn0","protocol":"kernel","scope":"link","flags":[]},
{"dst":"192.0.2.2","dev":"eth0","flags":[]},
{"type":"broadcast","dst":"127.255.255.255","dev":"lo","table":"local","flags":[]}]"""


def test_routes_are_read_and_a_default_route_takes_no_subnet():
    taken = bridge.parse_routes(ROUTES)
    assert bridge.overlapping(ipaddress.IPv4Network("10.177.0.0/24"), taken) is None
    assert bridge.overlapping(ipaddress.IPv4Network("10.77.3.0/24"), taken) == ipaddress.IPv4Network("10.77.0.0/16")


def test_the_first_free_candidate_is_taken(monkeypatch):
    monkeypatch.setattr(bridge, "_routes", lambda: bridge.parse_routes(ROUTES))
    assert bridge.choose_subnet() == ipaddress.IPv4Network("10.177.0.0/24")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [("10.77.5.0/24", "is taken"), ("10.1.2.3/8", "is not a subnet"), ("10.9.0.0/28", "too small"), ("x", "not a sub")],
)
def test_a_subnet_that_cannot_be_had_is_said_with_the_fix(monkeypatch, wanted, message):
    monkeypatch.setattr(bridge, "_routes", lambda: bridge.parse_routes(ROUTES))
    with pytest.raises(HostError, match=message) as caught:
        bridge.choose_subnet(wanted)
    assert caught.value.fix


def test_commands_of_one_namespace_share_a_process(monkeypatch):
    batches = []
    monkeypatch.setattr(bridge, "_run_batch", lambda where, commands: batches.append((where, list(commands))))
    bridge.ip_batch("link add a", "addr add b", "-n ns link set lo up", "-n ns route add c", "neigh d")
    assert batches == [("", ["link add a", "addr add b"]), ("ns", ["link set lo up", "route add c"]), ("", ["neigh d"])]


def test_two_that_want_the_same_port_at_one_moment_listen_on_two(monkeypatch):
    """Several sockets may be bound to one port until one of them listens: seen where four instances started at once."""
    network = bridge.Network(ipaddress.IPv4Network("127.0.0.0/30"))
    bind = fence.bind_allowed
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def bound_at_one_moment(asker, host):
            bind(asker, host)
            if other.getsockname()[1] == 0:
                other.bind(asker.getsockname())
                other.listen()

        monkeypatch.setattr(fence, "bind_allowed", bound_at_one_moment)
        with network.listener() as listener:
            assert listener.getsockname()[0] == other.getsockname()[0] == network.host
            assert listener.getsockname()[1] != other.getsockname()[1]
