"""A client on another machine: it calls instances at ports of this host's own address, as users of a service do.

Engines that publish ports do so on that address, and what shares the host's network listens there. What has an address
of its own on tare's bridge gets a port of the host's that leads to it (DNAT). The ports of instances are open to this
client alone for the campaign: what others send there is dropped before anything else sees it. All rules are in the
journal, so that they go after a kill as well.
"""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostError
from tare.host import distribution, processes
from tare.host.kernel import settings
from tare.host.network import fence
from tare.host.network.fence import BRIDGE, INSTANCE_PORTS, span
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.timeouts import stretched

#: In which a connection of the client's is to arrive here.
LIMIT_S = 10.0
_FORWARDING = "/proc/sys/net/ipv4/conf/{}/forwarding"
#: The comment of all rules here.
_LABELLED = ("-m", "comment", "--comment", "tare-client")
_FILTER_FIX = "load the kernel's packet filter, address translation and connection tracking"


@dataclass(frozen=True, slots=True)
class Outside:
    """A client on another machine: its address as this host sees it, and this host's address that it calls."""

    address: str
    front: str
    link: str  # of this host's, towards the client


def way_to(address: str) -> Outside:
    """Return the way to a machine, by its IPv4 address.

    Raises `HostError` where there is none, or where it is this host.
    """
    try:
        ipaddress.IPv4Address(address)
    except ValueError as error:
        problem = f"the client has no IPv4 address that it is reached at ({address or 'none'})"
        raise HostError(problem, fix="name it by its IPv4 address: --client ssh:[USER@]ADDRESS") from error
    got = processes.run(["ip", "-j", "-4", "route", "get", address])
    routes = json.loads(got.text or "[]") if got.code == 0 else []
    if not routes or "prefsrc" not in routes[0]:
        raise HostError(f"this host has no way to the client's address {address}", fix="see `ip route get` for it")
    route = routes[0]
    if route.get("type") == "local" or route["dev"] == "lo":
        raise HostError(f"the client's address {address} is this host's own", fix="leave --client out")
    return Outside(address, str(route["prefsrc"]), str(route["dev"]))


def gate_rules(outside: Outside) -> list[tuple[str, ...]]:
    """Chain and specification of the rules that close the ports of instances to everybody but the client."""
    others = ("!", "-i", "lo", "!", "-s", outside.address, "-d", outside.front)
    return [
        ("PREROUTING", "-t", "raw", *others, "-p", kind, "--dport", span(INSTANCE_PORTS), *_LABELLED, "-j", "DROP")
        for kind in ("tcp", "udp")
    ]


def passing_rules(outside: Outside, *, guarded: bool) -> list[tuple[str, ...]]:
    """Rules that let the client's calls in, and answers of instances on the bridge out; in the order of insertion.

    ``guarded``: INPUT has rules of the host's, behind which nothing of the client's might come in.
    """
    client, front = outside.address, outside.front
    let_in = [
        ("INPUT", "-s", client, "-d", front, "-p", kind, "--dport", span(INSTANCE_PORTS), *_LABELLED, "-j", "ACCEPT")
        for kind in ("tcp", "udp")
    ]
    return [
        *(let_in if guarded else []),
        (
            "FORWARD",
            "-i",
            BRIDGE,
            "-d",
            client,
            "-m",
            "conntrack",
            "--ctstate",
            "ESTABLISHED",
            *_LABELLED,
            "-j",
            "ACCEPT",
        ),
        ("FORWARD", "-o", BRIDGE, "-s", client, "-m", "conntrack", "--ctstate", "DNAT", *_LABELLED, "-j", "ACCEPT"),
    ]


def leading_rules(outside: Outside, port: int, address: str, instance_port: int) -> list[tuple[str, ...]]:
    """Rules that lead the client's calls of a port of this host's to an instance's on the bridge."""
    to = (*_LABELLED, "-j", "DNAT", "--to-destination", f"{address}:{instance_port}")
    where = ("-t", "nat", "-s", outside.address, "-d", outside.front)
    return [("PREROUTING", *where, "-p", kind, "--dport", str(port), *to) for kind in ("tcp", "udp")]


def forwarding_rules(outside: Outside) -> list[tuple[str, ...]]:
    """Rules by which a host that is no router forwards between the client's link and the bridge alone."""
    ways = ((outside.link, BRIDGE), (BRIDGE, outside.link))
    return [("FORWARD", "-i", link, "!", "-o", other, *_LABELLED, "-j", "DROP") for link, other in ways]


def open_to(cleanup: CleanupStack, outside: Outside) -> None:
    """Open the ports of instances to the client alone. Raises `HostError`."""
    if processes.find("iptables") is None:
        problem = "iptables is not installed: ports cannot be opened to the client alone"
        raise HostError(problem, fix=distribution.install("iptables"))
    guarded = processes.run(["iptables", "-w", "-S", "INPUT"]).text.splitlines() != ["-P INPUT ACCEPT"]
    _forward(cleanup, outside)
    for rule in (*gate_rules(outside), *passing_rules(outside, guarded=guarded)):
        insert(cleanup, rule)


def _forward(cleanup: CleanupStack, outside: Outside) -> None:
    """Forward between the client's link and the bridge, and nothing else, on a host that is no router."""
    if settings.read(Path(_FORWARDING.format("all"))) == "1":
        return
    for rule in forwarding_rules(outside):
        insert(cleanup, rule)
    for link in (outside.link, BRIDGE):
        file = Path(_FORWARDING.format(link))
        former = settings.read(file)
        if former == "0":
            cleanup.own(removers.setting(file, former, "1"))
            try:
                settings.write(file, "1")
            except OSError as error:
                problem = f"this host does not forward from {link} to its instances: {error.strerror}"
                raise HostError(problem, fix=f"echo 1 > {file}") from error


def insert(cleanup: CleanupStack, rule: tuple[str, ...]) -> None:
    """Set a rule before all others, and have it removed. Raises `HostError`."""
    cleanup.own(removers.iptables_rule(*rule))
    processes.run(["iptables", "-w", "-I", rule[0], "1", *rule[1:]]).require(fix=_FILTER_FIX)


def require_reached(outside: Outside, call: Callable[[str, int], object]) -> None:
    """Raise `HostError` where a call of the client's does not arrive at a port of instances, or from elsewhere.

    ``call`` has the client connect to an address and port.
    """
    with socket.socket() as listener:
        fence.bind_allowed(listener, outside.front, INSTANCE_PORTS)
        listener.listen()
        listener.settimeout(stretched(LIMIT_S))
        where = f"{outside.front}:{span(INSTANCE_PORTS)}"
        call(*listener.getsockname())
        try:
            connection, peer = listener.accept()
        except OSError as error:
            problem = f"the client {outside.address} does not reach this host's ports {where}"
            fix = "let the packet filters between both pass TCP and UDP to them"
            raise HostError(problem, fix=fix) from error
        connection.close()
        if peer[0] != outside.address:
            problem = f"the client's calls come from {peer[0]}, and not from its own address {outside.address}"
            raise HostError(problem, fix="put no address translation between both")
