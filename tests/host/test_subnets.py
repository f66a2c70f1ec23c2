"""Which subnet tare's bridge takes, on hosts whose routes are those of VPNs, routers and links of every kind."""

import json
import sys
from ipaddress import IPv4Network

import pytest

from tare.errors import HostError
from tare.host import processes
from tare.host.network import bridge, subnets
from tare.host.network.subnets import Clash

FIRST = str(subnets.CANDIDATES[0])
#: As `ip -j -4 rule` prints them without a word of the user's.
USUAL_RULES = [
    {"priority": 0, "src": "all", "table": "local"},
    {"priority": 32766, "src": "all", "table": "main"},
    {"priority": 32767, "src": "all", "table": "default"},
]
LOOPBACK = ("lo", "127.0.0.1", 8)


class Host:
    """What `ip` prints on a host: the routes as it filters them, by a subnet."""

    def __init__(self, monkeypatch, routes=(), addresses=(), rules=USUAL_RULES):
        self.routes, self.rules = routes, rules
        self.addresses = [
            {"ifname": link, "addr_info": [{"local": address, "prefixlen": prefix}]}
            for link, address, prefix in (LOOPBACK, *addresses)
        ]
        monkeypatch.setattr(subnets.processes, "run", self.run)

    def run(self, argv, **_):
        match argv[3:]:
            case ["rule", "show"]:
                answer = self.rules
            case ["addr", "show"]:
                answer = self.addresses
            case ["route", "show", "table", "all", kind, subnet]:
                answer = [route for route in self.routes if self._is(kind, IPv4Network(subnet), route["dst"])]
        return processes.Finished(tuple(argv), 0, json.dumps(answer).encode(), b"", 0)

    @staticmethod
    def _is(kind, subnet, destination):
        net = IPv4Network("0.0.0.0/0" if destination == "default" else destination)
        return net.supernet_of(subnet) if kind == "match" else net.subnet_of(subnet)


DEFAULT = {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []}
VPN_HALVES = [{"dst": half, "gateway": "10.8.0.1", "dev": "tun0", "flags": []} for half in ("0.0.0.0/1", "128.0.0.0/1")]
PRIVATE = [{"dst": net, "dev": "wg0", "scope": "link", "flags": []} for net in ("10.0.0.0/8", "172.16.0.0/12")]


@pytest.mark.parametrize(
    "routes",
    [
        [],
        [DEFAULT],
        [DEFAULT, *VPN_HALVES],
        [DEFAULT, *({"dst": f"{first}.0.0.0/6", "dev": "eth0", "flags": []} for first in range(0, 256, 4))],
        [DEFAULT, {"type": "blackhole", "dst": "10.0.0.0/8", "flags": []}],
        [DEFAULT, {"dst": "10.77.0.0/16", "dev": "eth1", "table": "100", "flags": []}],  # no rule asks that table
        [DEFAULT, {"dst": "10.77.0.0/24", "dev": bridge.BRIDGE, "protocol": "kernel", "flags": []}],
    ],
    ids=["none", "default", "vpn in halves", "aggregates", "blackhole", "another table", "left by a killed run"],
)
def test_routes_that_are_no_network_in_use_take_no_candidate(monkeypatch, routes):
    Host(monkeypatch, routes)
    assert subnets.choose() == (IPv4Network(FIRST), "")
    assert subnets.choose("10.201.3.0/24") == (IPv4Network("10.201.3.0/24"), "")


def test_a_vpn_that_takes_a_private_range_is_evaded(monkeypatch):
    Host(monkeypatch, [DEFAULT, *PRIVATE])
    assert subnets.choose() == (IPv4Network("192.168.177.0/24"), "")


def test_where_all_is_routed_the_least_specific_network_is_taken_from_and_that_is_said(monkeypatch):
    Host(monkeypatch, [*PRIVATE, {"dst": "192.168.0.0/16", "dev": "wg0", "flags": []}])
    subnet, remark = subnets.choose()
    assert subnet == IPv4Network(FIRST)
    assert remark.startswith(f"the host has a route to 10.0.0.0/8 by wg0, and tare's bridge takes {FIRST}: what else")


@pytest.mark.parametrize("routes", [PRIVATE, [{"dst": "10.77.0.0/16", "dev": "vpn0", "flags": []}]])
def test_a_subnet_that_is_asked_for_is_taken_from_a_route_and_that_is_said(monkeypatch, routes):
    Host(monkeypatch, routes)
    subnet, remark = subnets.choose("10.77.5.0/24")
    assert subnet == IPv4Network("10.77.5.0/24")
    assert routes[0]["dst"] in remark


def test_a_route_within_is_said_and_evaded(monkeypatch):
    Host(monkeypatch, [{"type": "blackhole", "dst": "10.77.0.64/26", "flags": []}])
    assert subnets.choose() == (subnets.CANDIDATES[1], "")
    subnet, remark = subnets.choose(FIRST)
    assert subnet == IPv4Network(FIRST)
    assert "a route to 10.77.0.64/26, " in remark


@pytest.mark.parametrize(
    ("address", "prefix"), [("10.77.0.1", 16), ("10.77.0.4", 31), ("10.77.0.9", 32), ("10.77.0.200", 28)]
)
def test_a_links_own_network_is_never_taken_and_the_advice_names_a_free_one(monkeypatch, address, prefix):
    Host(monkeypatch, addresses=[("eth1", address, prefix)])
    assert subnets.choose() == (subnets.CANDIDATES[1], "")
    with pytest.raises(HostError, match=r"is taken: the host's link eth1 has an address in 10\.77") as caught:
        subnets.choose(FIRST)
    assert subnets.choose(caught.value.fix.split()[1].rstrip(",")) == (subnets.CANDIDATES[1], "")


def test_both_ends_of_a_tunnel_are_a_links_own():
    peer = {"local": "10.8.0.5", "address": "10.9.0.1", "prefixlen": 32}
    uses = subnets.parse_addresses(json.dumps([{"ifname": "tun0", "addr_info": [peer]}, {}]))
    assert {str(use.network) for use in uses} == {"10.8.0.5/32", "10.9.0.1/32"}
    assert all(use.clash(IPv4Network("10.0.0.0/8")) is Clash.LINK for use in uses)


def test_a_host_on_which_links_have_all_is_told_what_to_give(monkeypatch):
    links = [(f"eth{number}", str(net[1]), 24) for number, net in enumerate(subnets.CANDIDATES)]
    Host(monkeypatch, addresses=links)
    with pytest.raises(HostError, match="no private subnet is free") as caught:
        subnets.choose()
    assert "--subnet" in caught.value.fix
    assert subnets.choose("10.3.0.0/24") == (IPv4Network("10.3.0.0/24"), "")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [("10.1.2.3/8", "is not a subnet"), ("10.9.0.0/28", "too small"), ("x", "not a sub")],
)
def test_what_is_no_subnet_is_said_with_the_fix(wanted, message):
    with pytest.raises(HostError, match=message) as caught:
        subnets.choose(wanted)
    assert caught.value.fix


#: Makes the campaign's network on a host of its own, and says what it took.
CREATE = """\
from tare.errors import HostError
from tare.host import state
from tare.host.network import bridge, subnets
from tare.host.resources.journal import CleanupStack, Journal
import sys
try:
    subnet, remark = subnets.choose(*sys.argv[1:])
    with CleanupStack(Journal(state.journal())) as cleanup:
        bridge.Network(subnet).create(cleanup)
    print(subnet, bool(remark))
except HostError as error:
    print(error, error.fix)
"""
LAN = "ip link add lan0 type bridge && ip addr add 192.0.2.2/24 dev lan0 && ip link set lan0 up && "
HALVES = "for half in 0.0.0.0/1 128.0.0.0/1; do ip route add $half via 192.0.2.1; done"
EVERY = "for net in 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16; do ip route add $net via 192.0.2.1; done"
#: A VPN whose table is asked before the main one, as Tailscale's with an exit node.
EXIT_NODE = "ip route add default via 192.0.2.1 table 52 && ip rule add pref 5270 lookup 52"


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize(
    ("setup", "asked_for", "said"),
    [
        (LAN + HALVES, [], f"{FIRST} False"),
        (LAN + HALVES, ["192.168.77.0/24"], "192.168.77.0/24 False"),
        (LAN + EVERY, [], f"{FIRST} True"),
        (LAN + EVERY, ["10.3.0.0/24"], "10.3.0.0/24 True"),
        (LAN + "ip route add blackhole 10.0.0.0/8", [], f"{FIRST} False"),
        (LAN + "ip addr add 10.77.0.4/31 dev lan0", [], f"{subnets.CANDIDATES[1]} False"),
        (LAN + "ip route add blackhole 10.77.0.2/32", [FIRST], "the host's routing sends what is for tare's bridge no"),
        (LAN + EXIT_NODE, [], "the host's routing sends what is for tare's bridge by lan0"),
        (f"{LAN}{EXIT_NODE} && ip rule add pref 77 to {FIRST} lookup main", ["10.77.0.0/24"], f"{FIRST} False"),
        ("ip link add v6 type bridge && ip addr add fd00::1/64 dev v6 && ip link set v6 up", [], f"{FIRST} False"),
    ],
)
def test_the_network_is_made_on_hosts_with_such_routes(tmp_path, setup, asked_for, said):
    script = (
        f'mount -t tmpfs none /run; mkdir /run/netns; mount -t sysfs none /sys; ip link set lo up; {setup}; exec "$@"'
    )
    inner = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", script, "sh"]
    argv = ["env", f"TARE_HOME={tmp_path / 'home'}", *inner, sys.executable, "-P", "-c", CREATE, *asked_for]
    done = processes.run(argv, time_limit_s=60)
    assert done.text.startswith(said), done.stderr
