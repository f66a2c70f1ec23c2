"""The MTU of an instance's link, as the fairness manifest has it: from what `ip` prints inside, and of a real one."""

from types import SimpleNamespace

import pytest

from tare.campaign.execution import preflight
from tare.host import processes
from tare.host.network.fence import BRIDGE
from tare.model import Arm
from tare.platforms import platform_registry
from tare.platforms.base import NO_NETWORK
from tare.session import Refused

CLIENT = "10.77.0.2"
#: What iproute2 6.1 printed inside: `ip route get` and `ip link show`. Docker's daemon had an `mtu` of 1450.
PRINTED = {
    "native": (
        "10.77.0.2 dev tare0 src 10.77.0.1 uid 0 \n    cache \n",
        "3: tare0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default"
        " qlen 1000\n    link/ether 02:7a:0a:4d:00:01 brd ff:ff:ff:ff:ff:ff\n",
    ),
    "docker": (
        "10.77.0.2 via 172.17.0.1 dev eth0 src 172.17.0.2 uid 0 \n    cache \n",
        "8: eth0@if9: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue state UP mode DEFAULT group default \n"
        "    link/ether 02:42:ac:11:00:02 brd ff:ff:ff:ff:ff:ff link-netnsid 0\n",
    ),
    "podman-rootless": (
        "10.77.0.2 via 10.0.2.2 dev tap0 src 10.0.2.100 uid 0 \n    cache \n",
        "2: tap0: <BROADCAST,UP,LOWER_UP> mtu 65520 qdisc pfifo_fast state UNKNOWN mode DEFAULT group default"
        " qlen 1000\n    link/ether 22:7a:03:76:cc:a7 brd ff:ff:ff:ff:ff:ff\n",
    ),
    "gvisor": (
        "10.77.0.2 dev eth0 src 10.77.0.10 \n    cache \n",
        "2: eth0: <UP,LOWER_UP> mtu 1500 \n    link/ether 02:7a:0a:4d:00:0a brd ff:ff:ff:ff:ff:ff\n",
    ),
    "gvisor-host": (
        "10.77.0.2 dev eth0 src 10.77.0.11 \n    cache \n",
        "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 0 qlen 1000\n"
        "    link/ether 02:7a:0a:4d:00:0b brd ff:ff:ff:ff:ff:ff\n",
    ),
}


def _running(execute, host="10.77.0.9", client=None):
    address = SimpleNamespace(host=host, client=client)
    network = SimpleNamespace(client=CLIENT, caller=CLIENT)
    instance = SimpleNamespace(address=address, spec=SimpleNamespace(network=network))
    return SimpleNamespace(instance=instance, session=SimpleNamespace(execute=execute))


def _done(text, code=0):
    return SimpleNamespace(stdout=text.encode(), code=code)


@pytest.mark.parametrize(
    ("name", "mtu"),
    [("native", 1500), ("docker", 1450), ("podman-rootless", 65520), ("gvisor", 1500), ("gvisor-host", "unknown")],
)
def test_it_is_that_of_the_link_on_the_way_to_the_client(name, mtu):
    route, link = PRINTED[name]
    device = route.split(" dev ")[1].split()[0]
    answers = {("ip", "route", "get", CLIENT): route, ("ip", "link", "show", "dev", device): link}
    assert preflight._mtu(_running(lambda argv, **_: _done(answers[tuple(argv)]))) == mtu


def test_what_knows_this_host_by_another_address_is_asked_for_that():
    commands = []
    preflight._mtu(_running(lambda argv, **_: commands.append(argv) or _done("", 2), client="192.0.2.7"))
    assert commands == [["ip", "route", "get", "192.0.2.7"]]


def test_without_a_program_or_a_route_it_is_unknown_and_without_a_network_there_is_none():
    def refuse(*_args, **_options):
        raise Refused("there is no ip", "not-found")

    assert preflight._mtu(_running(refuse)) == "unknown"
    assert preflight._mtu(_running(lambda *_, **__: _done("RTNETLINK answers: Network is unreachable", 2))) == "unknown"
    assert preflight._mtu(_running(refuse, host=None)) == NO_NETWORK


@pytest.mark.host
@pytest.mark.own_host
def test_a_real_links_mtu_is_read_as_it_is(launcher):
    platform = platform_registry.choose(["native"])[0]
    assert platform.detect().available
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(platform.name), measured=False)
    try:
        assert preflight._mtu(running) == 1500
        processes.run(["ip", "link", "set", BRIDGE, "mtu", "1400"]).require()
        assert preflight._mtu(running) == 1400
    finally:
        running.stop()
