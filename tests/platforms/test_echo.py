"""What can be pinged of an instance that is up, whether or not that tells when it started."""

from tare.platforms.base import Address


class Spec:
    """As much of a `LaunchSpec` as an address is made of."""

    class network:  # noqa: N801 (an attribute)
        host = front = "192.0.2.1"

    port = 20100


def test_what_shares_the_hosts_network_answers_at_the_hosts_address_but_that_is_no_mark_of_a_start():
    address = Address.on_host(Spec)
    assert (address.echo, address.ping) == ("192.0.2.1", None)
    assert "before the start" in address.no_ping


def test_a_namespace_answers_at_its_own_address():
    address = Address.on_veth(Spec, "192.0.2.7")
    assert (address.echo, address.ping) == ("192.0.2.7", None)


def test_a_stack_that_comes_with_the_instance_answers_where_the_start_is_watched():
    address = Address("192.0.2.1", 20100, 20100, "198.51.100.2")
    assert address.echo == address.ping == "198.51.100.2"


def test_without_a_network_or_behind_a_port_nothing_answers():
    assert Address.nowhere(Spec).echo is None
    assert Address("192.0.2.1", 20100, 20100, None, "user-mode network").echo is None
