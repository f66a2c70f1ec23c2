import ipaddress
import socket

from tare.host.network import bridge, fence


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
