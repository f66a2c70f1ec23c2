"""A DHCP server on tare's bridge, for guests that take their address by no other way: Debian's dnsmasq.

Which address a guest gets is known before: each MAC on the bridge is made from its address (`fence.mac`), so the server
has a fixed list. The packet filter lets a guest's requests through to it for as long as the guest is there.
"""

from __future__ import annotations

import ipaddress
import os

from tare.errors import HostError
from tare.host import distribution, own_daemon, processes, state
from tare.host.network import fence
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack

PROGRAM = "dnsmasq"
FIX = distribution.install("dnsmasq-base")
#: What it needs to begin, of which it keeps the first alone; as nobody, who parses guests' bytes (capabilities(7)).
_RIGHTS = "-all,+net_admin,+net_raw,+net_bind_service,+setuid,+setgid"
#: The addresses of instances, as positions in the subnet (`bridge.Network`).
GIVEN = range(10, 251)
READY = "DHCP, static leases only"


def missing() -> HostError | None:
    """Return why no guest can be given an address by DHCP here; None when one can."""
    if processes.find(PROGRAM) is None:
        return HostError(f"dhcp: {PROGRAM}, which is the DHCP server, is not installed", fix=FIX)
    return None


def arguments(subnet: ipaddress.IPv4Network) -> list[str]:
    """Return the command of a server that gives every MAC of the subnet its address, and answers nothing else."""
    hosts = (str(subnet[number]) for number in GIVEN)
    return [
        processes.find(PROGRAM) or PROGRAM,
        *("--keep-in-foreground", "--conf-file=/dev/null", "--pid-file", "--leasefile-ro", "--log-facility=-"),
        *("--port=0", f"--interface={fence.BRIDGE}", "--except-interface=lo", "--bind-interfaces"),
        *("--dhcp-authoritative", "--no-ping", f"--dhcp-range={subnet[0]},static,{subnet.netmask},infinite"),
        f"--dhcp-option=option:router,{subnet[1]}",
        *(f"--dhcp-host={fence.mac(address)},{address}" for address in hosts),
    ]


def admit(cleanup: CleanupStack, mac: str) -> None:
    """Let the requests of one guest, which has no address yet, through to the server."""
    if processes.find("iptables") is None:
        return
    rule = ("INPUT", "-i", fence.BRIDGE, "-p", "udp", "--dport", "67", "-m", "mac", "--mac-source", mac, "-j", "ACCEPT")
    cleanup.own(removers.iptables_rule(*rule))
    processes.run(["iptables", "-w", "-I", rule[0], "1", *rule[1:]]).require()


def start(cleanup: CleanupStack, subnet: ipaddress.IPv4Network) -> own_daemon.Daemon:
    """Return the server, in service; it goes with the bridge's own clean-up. Raises `HostError`."""
    lacking = missing()
    if lacking is not None:
        raise lacking
    log = state.work() / f"dhcp-{os.getpid()}.log"
    cleanup.own(removers.file(log))
    argv = [*processes.WITH_TARE, "--no-new-privs", f"--bounding-set={_RIGHTS}", *arguments(subnet)]
    return own_daemon.start(cleanup, "dhcp", argv, ready=lambda: READY in log.read_text(errors="replace"), log=log)
