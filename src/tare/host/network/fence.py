"""Rules for instances on tare's bridge: they reach the client, and of the host only the ports that tare opens.

Each port of the bridge is set to what it may carry (bridge(8)); that costs a frame one lookup in the bridge's table. An
instance's port is isolated, so that no frame of its goes to another's; it takes frames from the instance's MAC alone
(``locked``, Linux 5.18), and gets those to it alone (no learning, no flooding). The instances of one trial may be let
reach each other (`bridge.Network.joined`). Neighbour entries are fixed where answers to ARP would be believed: on the
host and in the client.

The packet filter does the rest. Nothing is routed between instances and other networks, and an instance begins nothing
with the host but at these. A MAC is made from its instance's address (`mac`), so that one rule without a list finds
packets with a false source address, on the host and in the client. Rules know the client by its MAC, to which its port
of the bridge is bound. None of them tracks connections unless the host's filter does already: that would cost time for
every packet of the host's.

The client's programs read what hostile servers answer, so the client is fenced as well, by rules of its own namespace:
they cost each platform the same, where rules of the host's would slow the baseline alone.
"""

from __future__ import annotations

import errno
import functools
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from tare.errors import HostError
from tare.host import processes
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack

BRIDGE = "tare0"
#: Ports of the host that instances may send to first: agents of guests by TCP, the marks of starts by UDP. The host's
#: own requests by UDP come from one of these, as no rule could distinguish an answer from a first packet. IANA has
#: given them to no service, and only root can bind them: another user can neither hold them all nor listen on one.
OPEN_PORTS = range(914, 953)
#: Ports of instances on the host, below Linux's ephemeral ports (from 32,768). The client begins connections with no
#: other port of the host's.
INSTANCE_PORTS = range(20_100, 22_100)

_MAC_BEGINS = "02:7a"
#: TCP, UDP and ICMP; the most frequent first.
_PROTOCOLS = (6, 17, 1)
#: Of linux/filter.h: what counts from the link's header, in which the sender's MAC has bytes 6 to 11.
_LINK_HEADER = (-0x200000) & 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class FenceClient:
    """The one machine on the bridge that may talk to all others."""

    address: str
    mac: str


def rules(client: FenceClient, *, drops: bool, guarded: bool = False, by_mac: bool = True) -> list[tuple[str, ...]]:
    """Chain and specification of each rule before all others, in their order.

    ``drops``: whether FORWARD refuses what nobody accepts, as Docker sets it: bridged frames pass it where br_netfilter
    is loaded, and so does what the client sends to containers' own addresses. ``guarded``: whether INPUT has rules
    of the host's, as ufw sets them, behind which nothing of the bridge's might come in. ``by_mac``: the filter matches
    MACs; the last rule shows whether it does.
    """
    of_client = ("-m", "mac", "--mac-source", client.mac) if by_mac else ("-s", client.address)
    not_of_client = (*of_client[:-2], "!", *of_client[-2:])
    # By then only the client is left: pings of containers' own addresses, which their engine may refuse.
    of_client_alone = [("FORWARD", "-i", BRIDGE, "-p", "icmp", "-j", "ACCEPT")]
    # What is let in where the host's filter does not look: answers, the ports that are open to instances, the client.
    let_in = [
        ("INPUT", "-i", BRIDGE, "-m", "conntrack", "--ctstate", "ESTABLISHED", "-j", "ACCEPT"),
        *(("INPUT", "-i", BRIDGE, "-p", kind, "--dport", span(OPEN_PORTS), "-j", "ACCEPT") for kind in ("tcp", "udp")),
        ("INPUT", "-i", BRIDGE, "-p", "icmp", "-j", "ACCEPT"),
        ("INPUT", "-i", BRIDGE, *of_client, "-j", "ACCEPT"),
    ]
    return [
        ("FORWARD", "-i", BRIDGE, "-o", BRIDGE, "-j", "ACCEPT"),
        ("FORWARD", "-i", BRIDGE, *not_of_client, "-j", "DROP"),
        ("FORWARD", "-o", BRIDGE, "!", "-d", client.address, "-j", "DROP"),
        *(of_client_alone if drops else []),
        (
            "INPUT",
            "-i",
            BRIDGE,
            "-p",
            "tcp",
            "--syn",
            "!",
            "--dport",
            span(OPEN_PORTS),
            *not_of_client,
            "-j",
            "DROP",
        ),
        ("INPUT", "-i", BRIDGE, "-p", "udp", "!", "--dport", span(OPEN_PORTS), *not_of_client, "-j", "DROP"),
        *(let_in if guarded else []),
    ]


#: The rule behind all others, where FORWARD refuses what nobody accepts: what the client sends to ports that containers
#: publish. An engine accepts that by chains of its own, which such packets are to pass as they do without tare.
PUBLISHED = ("FORWARD", "-i", BRIDGE, "-m", "conntrack", "--ctstate", "DNAT", "-j", "ACCEPT")


def mac(address: str) -> str:
    """Return the locally administered MAC of an IPv4 address on the bridge."""
    return ":".join([_MAC_BEGINS, *(f"{octet:02x}" for octet in ipaddress.IPv4Address(address).packed)])


def lie_about_address(router: str | None = None, *, other_protocols: bool = False) -> tuple[str, ...]:
    """Return the match for a packet whose source is not the address that its sender's MAC is made from (xt_bpf).

    ``router``: an address that forwards the packets of others, and is let through. ``other_protocols``: also for one
    whose protocol none of the rules knows: not TCP, UDP or ICMP. Classic BPF, as in linux/filter.h.
    """
    load_word, load_byte, equals_constant, equals_x, to_x, end = 0x20, 0x30, 0x15, 0x1D, 0x07, 0x06
    known = [(equals_constant, 3 - at, 0, number) for at, number in enumerate(_PROTOCOLS)]
    passed = [] if router is None else [(equals_constant, 4, 0, int(ipaddress.IPv4Address(router)))]
    program = [
        (load_word, 0, 0, _LINK_HEADER + 8),
        *passed,
        (to_x, 0, 0, 0),
        (load_word, 0, 0, 12),
        (equals_x, 1, 0, 0),
        (end, 0, 0, 0xFFFF),
        *([(load_byte, 0, 0, 9), *known, (end, 0, 0, 0xFFFF)] if other_protocols else []),
        (end, 0, 0, 0),
    ]
    words = [str(len(program)), *(" ".join(map(str, instruction)) for instruction in program)]
    return ("-m", "bpf", "--bytecode", ",".join(words))


def filter_packets(cleanup: CleanupStack, client: FenceClient) -> str | None:
    """Set the rules, and return what they cannot keep shut here, in one line; None: nothing.

    Raises `HostError` when the packet filter does not take them.
    """
    if processes.find("iptables") is None:
        return "iptables is not installed: an instance reaches all of the host's ports and networks"
    drops = "-P FORWARD ACCEPT" not in processes.run(["iptables", "-w", "-S", "FORWARD"]).text.splitlines()
    guarded = processes.run(["iptables", "-w", "-S", "INPUT"]).text.splitlines() != ["-P INPUT ACCEPT"]
    # A kernel may have a filter that knows no MACs: then it is by address, which an instance could lie about.
    by_mac = _insert(cleanup, rules(client, drops=drops, guarded=guarded)[-1]).code == 0
    all_rules = rules(client, drops=drops, guarded=guarded, by_mac=by_mac)
    for rule in reversed(all_rules[:-1] if by_mac else all_rules):
        _insert(cleanup, rule).require(fix="load the kernel's packet filter, or remove iptables where there is none")
    if drops:
        cleanup.own(removers.iptables_rule(*PUBLISHED))
        processes.run(["iptables", "-w", "-A", *PUBLISHED]).require(fix="load the kernel's connection tracking")
    if _insert(cleanup, true_addresses()).code == 0:
        return None
    return (
        "the packet filter has no match by BPF (modprobe xt_bpf): an instance with raw sockets could send in another's "
        "name to the client and the ports that tare opens"
    )


def guard_client(namespace: str, host: str, subnet: ipaddress.IPv4Network) -> None:
    """Let the client accept no packet with a false source, and begin nothing with the host but at instances' ports.

    ``host``: the host's address, which forwards packets. Raises `HostError`.
    """
    if processes.find("iptables") is None:
        return
    within = ["ip", "netns", "exec", namespace]
    lies = lie_about_address(router=host)
    processes.run([*within, "iptables", "-w", "-I", "INPUT", "1", "-i", "eth0", *lies, "-j", "DROP"])
    lines = ["*filter", *(" ".join(("-A", *rule)) for rule in client_rules(host, subnet)), "COMMIT", ""]
    restore = [*within, "iptables-restore", "-w", "--noflush"]
    processes.run(restore, stdin="\n".join(lines).encode()).require(fix="load the kernel's packet filter")


def client_rules(host: str, subnet: ipaddress.IPv4Network) -> list[tuple[str, ...]]:
    """Chain and specification of the rules for what the client sends, in their order.

    The first that match are those of the most packets: what belongs to a connection by TCP, and datagrams to instances.
    Guests on the bridge may serve at ports of their own.
    """
    at_instances = ("--dport", span(INSTANCE_PORTS), "-j", "ACCEPT")
    return [
        ("OUTPUT", "-p", "tcp", "!", "--syn", "-j", "ACCEPT"),
        ("OUTPUT", "-p", "udp", *at_instances),
        ("OUTPUT", "-p", "tcp", *at_instances),
        ("OUTPUT", "-p", "icmp", "-j", "ACCEPT"),
        ("OUTPUT", "-o", "eth0", "-d", host, "-j", "DROP"),
        ("OUTPUT", "-o", "eth0", "-d", str(subnet.broadcast_address), "-j", "DROP"),
        *(("OUTPUT", "-p", kind, "-d", str(subnet), "-j", "ACCEPT") for kind in ("tcp", "udp")),
        ("OUTPUT", "-o", "eth0", "-j", "DROP"),
    ]


def let_client_reach(namespace: str, address: str) -> None:
    """Let the client begin connections with a guest whose address is none of the bridge's. Raises `HostError`."""
    if processes.find("iptables") is not None:
        argv = ["iptables", "-w", "-I", "OUTPUT", "1", "-d", address, "-j", "ACCEPT"]
        processes.run(["ip", "netns", "exec", namespace, *argv]).require()


def true_addresses() -> tuple[str, ...]:
    """Return the host's rule that drops packets with a false source address or of an unknown protocol.

    The client has a rule of its own.
    """
    return ("INPUT", "-i", BRIDGE, *lie_about_address(other_protocols=True), "-j", "DROP")


def _insert(cleanup: CleanupStack, rule: Sequence[str]) -> processes.Finished:
    cleanup.own(removers.iptables_rule(*rule))
    return processes.run(["iptables", "-w", "-I", rule[0], "1", *rule[1:]])


def bind_allowed(asker: socket.socket, host: str, ports: range = OPEN_PORTS) -> None:
    """Bind a socket to one of these ports that is free on this address. Raises `HostError` when none is."""
    for port in ports:
        try:
            asker.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise HostError(f"port {port} of {host or 'this host'}: {error.strerror}", fix="tare clean") from error
        else:
            return
    raise HostError(f"the ports {ports[0]} to {ports[-1]} are all taken", fix="end what uses them (ss -tulnp)")


def port_words(link: str, *, isolated: bool) -> str:
    """Return the command to ``ip`` that sets what a port of the bridge carries."""
    flood = "off" if isolated else "on"
    return f"{isolation_words(link, isolated=isolated)} learning off flood {flood} mcast_flood {flood}"


def isolation_words(link: str, *, isolated: bool) -> str:
    """Return the command to ``ip`` that sets alone whether a port carries frames to others that are isolated."""
    return f"link set {link} type bridge_slave isolated {'on' if isolated else 'off'}"


def forgetting_words(link: str) -> str:
    """Return the command to ``ip`` that stops a port from learning MACs, and makes it forget the learned ones."""
    return f"link set {link} type bridge_slave learning off fdb_flush"


def pin(link: str, mac: str) -> None:
    """Let a port of the bridge carry frames of one MAC alone. Raises `HostError`."""
    batch = [f"fdb replace {mac} dev {link} master static", *([f"link set dev {link} locked on"] if _locks() else [])]
    processes.run(["bridge", "-batch", "-"], stdin="".join(f"{line}\n" for line in batch).encode()).require()


@functools.cache
def _locks() -> bool:
    """Return True if this `bridge` can lock ports (iproute2 5.18); a kernel that cannot passes over it."""
    return b"locked" in processes.run(["bridge", "link", "help"]).stderr


def span(ports: range) -> str:
    """Return a range of ports as iptables writes it."""
    return f"{ports[0]}:{ports[-1]}"
