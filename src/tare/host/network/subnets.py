"""The subnet of tare's bridge: the one that the user asks for, or one that the host does not use."""

from __future__ import annotations

import enum
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from tare.errors import HostError
from tare.host import processes
from tare.host.network.fence import BRIDGE

#: Private networks that are tried in turn until one is free: VPNs take one of the three private ranges whole at times.
CANDIDATES = tuple(
    IPv4Network(f"{network}.0/24")
    for network in ("10.77.0", "10.177.0", "10.201.0", "10.233.0", "10.99.0", "172.29.77", "192.168.177")
)
#: A shorter prefix is no network: it is a default route in halves, as VPNs set it, or an aggregate of a router's.
_SHORTEST = 8
#: Routes that lead nowhere: they keep packets from a default route, and nobody is behind them.
_NOWHERE = frozenset({"blackhole", "unreachable", "prohibit", "throw"})


class Clash(enum.IntEnum):
    """The clash of a subnet with the host's own addresses, the least obstacle first."""

    NONE = 0
    PART = 1  # the subnet is part of a larger network that the host has a route to: the bridge's route is closer
    ROUTE = 2  # the host has a route to the subnet, or to a part of it, which is as close as the bridge's or closer
    LINK = 3  # a link of the host's has an address there


@dataclass(frozen=True, slots=True)
class NetworkUse:
    """One network that the host uses: a link's own, or the destination of a route."""

    network: IPv4Network
    link: str  # "": of a route that leads nowhere
    own: bool = False
    nowhere: bool = False

    def clash(self, subnet: IPv4Network) -> Clash:
        """Return how this use meets the subnet."""
        if not self.network.overlaps(subnet):
            return Clash.NONE
        if self.own:
            return Clash.LINK
        if self.network.subnet_of(subnet):
            return Clash.ROUTE
        return Clash.NONE if self.nowhere or self.network.prefixlen < _SHORTEST else Clash.PART

    def __str__(self) -> str:
        way = f" by {self.link}" if self.link else ""
        return f"{self.link} has an address in {self.network}" if self.own else f"a route to {self.network}{way}"


def parse(text: str) -> IPv4Network:
    """Return the subnet of tare's bridge from ``10.77.0.0/24``.

    Raises `HostError` for none, or one that is too small.
    """
    try:
        subnet = IPv4Network(text)
    except ValueError as error:
        raise HostError(f"{text} is not a subnet: {error}", fix="give one such as 10.77.0.0/24") from error
    if subnet.num_addresses < 256:
        raise HostError(f"the subnet {text} is too small", fix="give a /24 or larger")
    return subnet


def choose(asked_for: str | None = None, *, prefix: int = 24) -> tuple[IPv4Network, str]:
    """Return the requested subnet or a free one, and in one line what the host cannot reach because of it (or "").

    ``prefix``: the length of the free one's prefix, of 24 at most.

    Raises `HostError` where a link of the host's has an address in the subnet that was asked for, or no subnet is free.
    """
    if asked_for is not None:
        subnet = parse(asked_for)
        clash, use = met(subnet)
        if clash is Clash.LINK:
            raise HostError(f"the subnet {asked_for} is taken: the host's link {use}", fix=_another())
        return subnet, _remark(subnet, clash, use)
    met_by = []
    for candidate in (network.supernet(new_prefix=prefix) for network in CANDIDATES):
        clash, use = met(candidate)
        if use is None:
            return candidate, ""
        met_by.append((clash, use.network.prefixlen, candidate, use))
    clash, _, candidate, use = min(met_by, key=lambda row: row[:2])
    if clash > Clash.PART:
        raise HostError(
            "no private subnet is free for the bridge: the host has links or routes in all that are tried",
            fix="give one with --subnet that no link of the host's has an address in (ip -4 addr)",
        )
    return candidate, _remark(candidate, clash, use)


def met(subnet: IPv4Network) -> tuple[Clash, NetworkUse | None]:
    """Return the greatest obstacle to a subnet on this host, and whose it is."""
    return greatest(subnet, in_use(subnet))


def greatest(subnet: IPv4Network, uses: Sequence[NetworkUse]) -> tuple[Clash, NetworkUse | None]:
    """Return the greatest clash of these uses with a subnet; of several alike the one of the longest prefix."""
    use = max(uses, key=lambda use: (use.clash(subnet), use.network.prefixlen), default=None)
    clash = Clash.NONE if use is None else use.clash(subnet)
    return clash, (None if clash is Clash.NONE else use)


def in_use(subnet: IPv4Network) -> list[NetworkUse]:
    """Return the host's networks that contain the subnet or are in it; a router may have many others."""
    rules = processes.run(["ip", "-j", "-4", "rule", "show"])  # a kernel may have no rules, and the usual tables then
    tables = parse_rules(rules.text) if rules.code == 0 else frozenset({"local", "main", "default"})
    listings = [_listed("route", "show", "table", "all", kind, str(subnet)) for kind in ("match", "root")]
    return [
        *parse_addresses(_listed("addr", "show")),
        *(use for text in listings for use in parse_routes(text, tables)),
    ]


def parse_addresses(text: str) -> list[NetworkUse]:
    """Return the networks of the links' own addresses, from ``ip -j -4 addr``; those of tare's own bridge are left out.

    What a killed run left of the bridge is removed before there is another.
    """
    uses = []
    for link in json.loads(text or "[]"):
        if link.get("ifname") in {None, BRIDGE}:
            continue
        for address in link["addr_info"]:
            ends = {f"{address['local']}/32", f"{address.get('address', address['local'])}/{address['prefixlen']}"}
            uses += [NetworkUse(IPv4Network(end, strict=False), link["ifname"], own=True) for end in sorted(ends)]
    return uses


def parse_rules(text: str) -> frozenset[str]:
    """Return the tables that the host's rules name, from ``ip -j -4 rule``.

    A table without one is another network's (VRF).
    """
    return frozenset(str(rule["table"]) for rule in json.loads(text or "[]") if "table" in rule)


def parse_routes(text: str, tables: Collection[str]) -> list[NetworkUse]:
    """Return the destinations of routes in these tables, from ``ip -j -4 route``.

    Those by tare's own bridge are left out.
    """
    uses = []
    for route in json.loads(text or "[]"):
        link = route.get("dev", "")
        if link == BRIDGE or route.get("table", "main") not in tables:
            continue
        destination = "0.0.0.0/0" if route["dst"] == "default" else route["dst"]
        nowhere = route.get("type") in _NOWHERE
        uses.append(NetworkUse(IPv4Network(destination, strict=False), link, nowhere=nowhere))
    return uses


def _another() -> str:
    free = next((str(candidate) for candidate in CANDIDATES if met(candidate)[0] is Clash.NONE), None)
    return f"--subnet {free}, which is free" if free else "give one that no link of the host's has an address in"


def _remark(subnet: IPv4Network, clash: Clash, use: NetworkUse | None) -> str:
    if clash is Clash.NONE:
        return ""
    lost = "what else is there" if clash is Clash.PART else "an instance with an address of that route's"
    return f"the host has {use}, and tare's bridge takes {subnet}: {lost} is not reached until tare ends"


def _listed(*words: str) -> str:
    return processes.run(["ip", "-j", "-4", *words]).require().text
