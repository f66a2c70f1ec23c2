"""Whether the host's own packet filter lets tare's bridge through: tried, as a filter has many ways to refuse.

What one table accepts, another may still drop: the fence's rules, which iptables makes, do not open a host whose filter
is nftables' own or firewalld's. tare leaves those as they are, and says which chain refuses and what opens it.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import threading
from pathlib import Path

from tare.errors import HostError
from tare.host import processes
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


def require_to_host(client: str, host: str) -> None:
    """Raise `HostError` where the filter keeps the client's namespace from the host's address on the bridge."""
    with socket.socket() as listener:
        fence.bind_allowed(listener, host)
        if not _connects(client, listener):
            raise _refusal("input", "what comes from tare's bridge to this host")


def require_between(client: str, instance: str, address: str) -> None:
    """The same for two namespaces on the bridge, the second with this address."""
    with socket_in(instance) as listener:
        listener.bind((address, 0))
        if not _connects(client, listener):
            raise _refusal("forward", "what goes from one port of tare's bridge to another")


def bridged_frames_are_filtered() -> bool:
    """Whether frames within a bridge pass the filter."""
    try:
        return BRIDGED.read_text().strip() == "1"
    except OSError:
        return False


def refusing(listing: str, hook: str) -> list[str]:
    """The base chains on a hook that refuse something, as family, table and chain, from ``nft -j list ruleset``.

    Those of iptables' filter, in which the fence's rules are, are left out.
    """
    entries = json.loads(listing or "{}").get("nftables", [])
    chains = {}
    for chain in (entry["chain"] for entry in entries if "chain" in entry):
        if chain.get("hook") == hook and (chain["family"], chain["table"]) != _FENCES:
            place = (chain["family"], chain["table"], chain["name"])
            chains[place] = chain.get("policy") == "drop"
    for rule in (entry["rule"] for entry in entries if "rule" in entry):
        place = (rule["family"], rule["table"], rule["chain"])
        if place in chains and any("drop" in part or "reject" in part for part in rule["expr"]):
            chains[place] = True
    return [" ".join(place) for place, refuses in chains.items() if refuses]


def _refusal(hook: str, refused: str) -> HostError:
    chains: list[str] = []
    if processes.find("nft") is not None:
        chains = refusing(processes.run(["nft", "-j", "list", "ruleset"]).text, hook)
    if processes.find("firewall-cmd") is not None and processes.run(["firewall-cmd", "--state"]).code == 0:
        fix = f"firewall-cmd --zone=trusted --add-interface={BRIDGE}"
    elif chains:
        fix = "; ".join(f"nft insert rule {chain} iifname {BRIDGE} accept" for chain in chains)
    else:
        fix = f"let the host's filter accept what comes in by {BRIDGE}"
    by = f" (nftables: {', '.join(chains)})" if chains else ""
    return HostError(f"the host's packet filter refuses {refused}{by}", fix=fix)


def _connects(namespace: str, listener: socket.socket) -> bool:
    listener.listen()
    with socket_in(namespace) as caller:
        caller.settimeout(stretched(LIMIT_S))
        try:
            caller.connect(listener.getsockname())
        except OSError:
            return False
    return True


def socket_in(namespace: str, *kind: int) -> socket.socket:
    """A socket of a network namespace, of TCP or of another ``kind`` as `socket.socket` has it. Raises `HostError`.

    It is made by a thread that enters the namespace and ends.
    """
    made: list[socket.socket] = []
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
            made.append(socket.socket(*kind))
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if failures:
        raise HostError(f"the network namespace {namespace} cannot be entered: {failures[0].strerror}")
    return made[0]
