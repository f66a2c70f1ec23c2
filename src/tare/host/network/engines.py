"""Rules for containers on an engine's own bridge (docker0, podman0): they reach the client and tare's ports.

The bridge is its engine's, and what else is on it keeps what it has: containers of the host's user reach the host and
the networks behind it as before. So a rule names the bridge and the MAC of one container, and that container's port of
the bridge takes frames of this MAC alone (`fence.pin`). Containers on one bridge reach each other, as their engine has
it.

What comes from such a bridge and is not for the client passes a chain of tare's, with a rule or two for each container;
what answers the client passes one rule more than without tare, whose destination settles the matter. No rule accepts
anything, so that the engine's own chains are passed as ever.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tare.errors import HostError
from tare.host import processes
from tare.host.network import fence
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack

#: tare's chains, by those of the filter from which rules lead to them.
CHAINS = {"FORWARD": "tare-forward", "INPUT": "tare-input"}
#: The rules are removed by this comment of theirs (`removers.packet_rules`).
_LABELLED = ("-m", "comment", "--comment")
#: What nobody asked for. Conntrack knows it: an engine that translates addresses has that track all connections.
_BEGUN = ("-m", "conntrack", "!", "--ctstate", "ESTABLISHED,RELATED")
_IPV6 = Path("/proc/sys/net/ipv6")
_FIX = "load the kernel's packet filter and connection tracking, or remove iptables where there is none"


@dataclass(frozen=True, slots=True)
class Port:
    """A container's port of a bridge: the link of the host's, the bridge, and the MAC that is behind it."""

    link: str
    bridge: str
    mac: str


class Engines:
    """The rules for containers on engines' bridges. Made once a campaign."""

    def __init__(self, cleanup: CleanupStack, client: str | None) -> None:
        """``cleanup``: of what stays until the end of the campaign; ``client``: the client's address on tare's bridge.

        None: it is on another machine, whose other services no container may call: it gets answers alone.
        """
        self._cleanup, self._client = cleanup, client
        self._led: set[str] = set()  # bridges from which rules lead to the chains
        self._lock = threading.Lock()  # several instances may start at once

    def enclose(self, name: str, pid: int, address: str) -> None:
        """Restrict what a container reaches by the bridges that it is plugged into.

        ``name``: that of its `removers.packet_rules`, which the caller owns already; ``pid``: one of its processes;
        ``address``: its own, by which it is known where the packet filter matches no MACs. Raises `HostError`.
        """
        ports = plugged(_links(["nsenter", f"--net=/proc/{pid}/ns/net", "--"]), _links([])) if _has_own(pid) else []
        if not ports:
            raise HostError(f"what {name} reaches cannot be restricted: it is plugged into no bridge of this host's")
        for port in ports:
            if processes.find("iptables") is not None:  # where it is not, the fence has said so
                self._lead(port.bridge)
                _restrict(port, name, address)
            processes.run(["ip", *fence.forgetting_words(port.link).split()]).require()
            fence.pin(port.link, port.mac)

    def _lead(self, bridge: str) -> None:
        """Have what comes from a bridge pass the chains, which are made for the first one."""
        with self._lock:
            if bridge in self._led:
                return
            if not self._led:
                self._cleanup.own(*(removers.packet_chain(chain) for chain in CHAINS.values()))
                for program in _programs():
                    for chain in CHAINS.values():
                        processes.run([program, "-w", "-N", chain]).require(fix=_FIX)
            for program in _programs():
                answers = self._client is None and program == "iptables"
                for rule in leading(bridge, self._client if program == "iptables" else None, answers=answers):
                    _insert(program, rule).require(fix=_FIX)
            self._led.add(bridge)


def leading(bridge: str, client: str | None, *, answers: bool = False) -> list[tuple[str, ...]]:
    """Return the rules that lead from a bridge to the chains; ``client``: None: it is not spoken to by this protocol.

    ``answers``: what answers a call from beyond the bridge is not led there.
    """
    but_to_client = _BEGUN if answers else () if client is None else ("!", "-d", client)
    forwarded = ("FORWARD", "-i", bridge, "!", "-o", bridge, *but_to_client, "-j", CHAINS["FORWARD"])
    return [forwarded, ("INPUT", "-i", bridge, "-j", CHAINS["INPUT"])]


def rules(sender: Sequence[str], name: str) -> list[tuple[str, ...]]:
    """Chain and specification of the rules for a container. ``sender``: the match for its packets."""
    beyond, to_host = CHAINS["FORWARD"], CHAINS["INPUT"]
    end = (*_LABELLED, name, "-j", "DROP")
    return [
        (beyond, *sender, *end),
        (to_host, "!", "-p", "udp", *sender, *_BEGUN, *end),
        (to_host, "-p", "udp", "!", "--dport", fence.span(fence.OPEN_PORTS), *sender, *_BEGUN, *end),
    ]


def rules_of_ipv6(sender: Sequence[str], name: str) -> list[tuple[str, ...]]:
    """Return the same for IPv6, by which neither client nor tare speaks with it."""
    return [(chain, *sender, *_LABELLED, name, "-j", "DROP") for chain in CHAINS.values()]


def plugged(inside: Sequence[Mapping[str, Any]], outside: Sequence[Mapping[str, Any]]) -> list[Port]:
    """Return the ports of bridges behind which a container's links are, from ``ip -j link`` of both sides."""
    peers = {link["ifindex"]: link for link in outside if link.get("master")}
    pairs = ((peers.get(link.get("link_index")), link) for link in inside)
    return [Port(peer["ifname"], peer["master"], link["address"]) for peer, link in pairs if peer is not None]


def _restrict(port: Port, name: str, address: str) -> None:
    by_mac = ("-m", "mac", "--mac-source", port.mac)
    of_ipv6 = rules_of_ipv6(by_mac, name) if _IPV6.exists() else []
    [beyond, *to_host] = rules(by_mac, name)
    if _insert("iptables", beyond).code != 0:  # a kernel may have a filter that knows no MACs
        [beyond, *to_host], of_ipv6 = rules(("-s", address), name), []
        _insert("iptables", beyond).require(fix=_FIX)
    for program, more in (("iptables", to_host), ("ip6tables", of_ipv6)):
        for rule in more:
            _insert(program, rule).require(fix=_FIX)


def _programs() -> list[str]:
    return ["iptables", *(["ip6tables"] if _IPV6.exists() else [])]


def _insert(program: str, rule: Sequence[str]) -> processes.Finished:
    return processes.run([program, "-w", "-I", rule[0], "1", *rule[1:]])


def _has_own(pid: int) -> bool:
    """Return True if a process has a network of its own."""
    return os.path.realpath(f"/proc/{pid}/ns/net") != os.path.realpath("/proc/self/ns/net")


def _links(within: Sequence[str]) -> list[dict[str, Any]]:
    links: list[dict[str, Any]] = json.loads(processes.run([*within, "ip", "-json", "link"]).require().text or "[]")
    return links
