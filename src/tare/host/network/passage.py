"""A trial of the host's own packet filter, which has many ways to refuse tare's network.

What one table accepts, another may still drop: the fence's rules, which iptables makes, do not open a host whose filter
is nftables' own or firewalld's. tare leaves those as they are, and says which chain refuses and what opens it.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import threading
from collections.abc import Collection
from pathlib import Path

from tare.errors import HostError
from tare.host import processes
from tare.host.kernel import host_text
from tare.host.network import fence
from tare.host.network.fence import BRIDGE
from tare.timeouts import stretched

#: Of the module br_netfilter: whether frames from one port of a bridge to another pass FORWARD too.
BRIDGED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
#: In which a packet and its answer pass a filter, with one packet lost.
LIMIT_S = 2.0
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of sched.h
#: The table in which the fence's own rules are, where iptables is nftables'.
_FENCES = ("ip", "filter")
#: The families of tables that see IPv4 packets which the host takes in or forwards.
_ROUTED = ("ip", "inet")
#: Opens firewalld, which takes no rules but by its own command. The link need not be there yet, and may be made anew.
_TRUSTED = f"firewall-cmd --zone=trusted --add-interface={BRIDGE}"


def require_to_host(client: str, host: str) -> None:
    """Raise `HostError` where the filter keeps the client's namespace from the host's address on the bridge."""
    with socket.socket() as listener:
        fence.bind_allowed(listener, host, fence.INSTANCE_PORTS)
        listener.listen()
        if _connect_error(client, *listener.getsockname()) is not None:
            traffic = "what comes from tare's bridge to this host"
            raise _refusal("input", traffic, (*_ROUTED, "bridge")) or _unnamed(traffic)


def require_between(client: str, instance: str, address: str) -> None:
    """Raise `HostError` where the filter keeps the client's namespace from the instance's on the bridge.

    ``address``: the instance's there.
    """
    with socket_in(instance) as listener:
        listener.bind((address, 0))
        listener.listen()
        if _connect_error(client, *listener.getsockname()) is not None:
            traffic = "what goes from one port of tare's bridge to another"
            families = ("bridge", *(_ROUTED if _bridged_frames_are_routed() else ()))
            raise _refusal("forward", traffic, families) or _unnamed(traffic)


def refused_beyond(client: str, address: str, port: int) -> HostError | None:
    """Return why the host's filter keeps the client from an instance that listens behind this host, or None."""
    error = _connect_error(client, address, port)
    if error is None or isinstance(error, ConnectionRefusedError):  # the host of a port where nobody listens says that
        return None
    return _refusal("forward", "what goes from tare's bridge through this host to the instance", _ROUTED)


def _bridged_frames_are_routed() -> bool:
    """Return True if frames within a bridge pass the filter of what the host routes too."""
    return host_text.said(BRIDGED) == "1"


def refusing(listing: str, hook: str, families: Collection[str]) -> list[str]:
    """Return the base chains on a hook that refuse something, as family, table and chain, from ``nft -j list ruleset``.

    Those of iptables' filter, in which the fence's rules are, are left out.
    """
    entries = json.loads(listing or "{}").get("nftables", [])
    chains = {}
    for chain in (entry["chain"] for entry in entries if "chain" in entry):
        fences = (chain["family"], chain["table"]) == _FENCES
        if chain.get("hook") == hook and chain["family"] in families and not fences:
            place = (chain["family"], chain["table"], chain["name"])
            chains[place] = chain.get("policy") == "drop"
    for rule in (entry["rule"] for entry in entries if "rule" in entry):
        place = (rule["family"], rule["table"], rule["chain"])
        if place in chains and any("drop" in part or "reject" in part for part in rule["expr"]):
            chains[place] = True
    return [" ".join(place) for place, refuses in chains.items() if refuses]


def opening(chain: str, hook: str, *, firewalld: bool) -> list[str]:
    """Return the commands that let tare's network through a chain on a hook; ``firewalld``: whether it runs."""
    family, table, _ = chain.split()
    if firewalld and table == "firewalld":
        return [_TRUSTED]
    if family == "bridge":  # there an interface is a port; to match its bridge takes a module (nft_meta_bridge)
        matches = ['iifname "tare*"']
    else:
        matches = [f"iifname {BRIDGE}", *([f"oifname {BRIDGE}"] if hook == "forward" else [])]
    return [f"nft insert rule {chain} {match} accept" for match in matches]


def _refusal(hook: str, traffic: str, families: Collection[str]) -> HostError | None:
    """Return the error that names who refuses it, and what opens that; None where nobody is seen to."""
    chains: list[str] = []
    if processes.find("nft") is not None:
        chains = refusing(processes.run(["nft", "-j", "list", "ruleset"]).text, hook, families)
    firewalld = processes.find("firewall-cmd") is not None and processes.run(["firewall-cmd", "--state"]).code == 0
    openings = [command for chain in chains for command in opening(chain, hook, firewalld=firewalld)]
    if firewalld and not chains:  # it does without nft's command
        openings = [_TRUSTED]
    by = f" (nftables: {', '.join(chains)})" if chains else ""
    if not openings:
        return None
    return HostError(f"the host's packet filter refuses {traffic}{by}", fix="; ".join(dict.fromkeys(openings)))


def _unnamed(traffic: str) -> HostError:
    return HostError(f"the host's packet filter refuses {traffic}", fix=f"let it accept what comes in by {BRIDGE}")


def _connect_error(client: str, address: str, port: int) -> OSError | None:
    with socket_in(client) as caller:
        caller.settimeout(stretched(LIMIT_S))
        try:
            caller.connect((address, port))
        except OSError as error:
            return error
    return None


def socket_in(namespace: str, *kind: int) -> socket.socket:
    """Open a socket in a network namespace, of TCP or another ``kind`` of `socket.socket`. Raises `HostError`.

    It is made by a thread that enters the namespace and ends.
    """
    sockets: list[socket.socket] = []
    failures: list[OSError] = []

    def make() -> None:
        try:
            entered = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(entered, _NEW_NETWORK) != 0:
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
            finally:
                os.close(entered)
            sockets.append(socket.socket(*kind))
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if failures:
        raise HostError(f"the network namespace {namespace} cannot be entered: {failures[0].strerror}")
    return sockets[0]
