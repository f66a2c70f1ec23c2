"""The campaign's network: a bridge, and on it a client in a namespace of its own ("the other machine").

    client namespace ── veth ──┐
    instance namespace ─ veth ─┤ bridge (the host's own address on it)
    ...                        └─ host stack: native, published ports of Docker

Platforms that bring no network of their own get a namespace with a veth on the bridge; the others are reached by
the path that their users get by default. Addresses are fixed and written into the neighbour table, so that a ping
to an instance that is still starting does not wait for address resolution. `fence` limits what an instance may reach.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import itertools
import json
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.errors import HostError
from tare.host import processes
from tare.host.cgroup import Group
from tare.host.kernel import settings
from tare.host.kernel.links import links
from tare.host.network import dhcp, engines, fence, outside, passage, subnets
from tare.host.network.fence import BRIDGE
from tare.host.own_daemon import Daemon
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal

CLIENT_NAMESPACE = "tare-client"
_CLIENT_LINK = "tarec0"
#: What makes TAPs.
TUN = Path("/dev/net/tun")
#: Whether the host forwards packets. Netavark puts it on for Podman's published ports, and leaves it so.
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
#: A namespace that is made, and removed, to see whether frames pass from one port of the bridge to another.
_PROBE = "tare-probe"
#: Is there while the kernel has the driver.
TUN_DRIVER = Path("/sys/class/misc/tun")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address on the bridge, and the MAC that has it."""

    address: str
    mac: str


class Network:
    """The bridge and the client. Made once a campaign."""

    def __init__(self, subnet: ipaddress.IPv4Network) -> None:
        self.subnet = subnet
        self._cleanup: CleanupStack | None = None  # of all that goes with the bridge
        self._dhcp: Daemon | None = None
        self._engines: engines.Engines | None = None
        self._lock = threading.Lock()  # several instances may start at once
        self._unpinned: dict[str, tuple[str, Endpoint]] = {}  # by instance: ports that its platform makes
        self._fixed: set[str] = set()  # addresses that guests have by themselves
        self._outside: outside.Outside | None = None  # a client on another machine
        self._joined = False
        # Reused after 241 starts, or those of a larger subnet: the former holder is long gone.
        self._hosts = itertools.cycle(range(10, subnet.num_addresses - 5))

    @property
    def host(self) -> str:
        """The host's own address on the bridge; instances of the host's stack are reached here."""
        return str(self.subnet[1])

    @property
    def client(self) -> str:
        """The client's address."""
        return str(self.subnet[2])

    @property
    def front(self) -> str:
        """The host's address at which the client calls what shares the host's stack or publishes ports."""
        return self.host if self._outside is None else self._outside.front

    @property
    def called_from_outside(self) -> bool:
        """True if a client on another machine calls, and not the one on the bridge."""
        return self._outside is not None

    @property
    def caller(self) -> str:
        """The address of the client that calls: on the bridge, or on another machine (`serve_outside`)."""
        return self.client if self._outside is None else self._outside.address

    @property
    def prefix(self) -> int:
        """Length of the subnet's prefix."""
        return self.subnet.prefixlen

    def create(self, cleanup: CleanupStack) -> str | None:
        """Make bridge, client and their fence; returns what the fence cannot keep shut here (`fence.filter_packets`).

        Raises `HostError`, also where the host's own packet filter refuses what passes the bridge.
        """
        if BRIDGE in links():
            fix = "tare clean, with the TARE_HOME of the run that left it"
            raise HostError(f"the link {BRIDGE} exists already", fix=fix)
        self._cleanup, self._engines = cleanup, engines.Engines(cleanup, self.client)
        if settings.read(FORWARDING) == "0":
            cleanup.own(removers.setting(FORWARDING, "0", "1"))
        cleanup.own(removers.link(BRIDGE), removers.network_namespace(CLIENT_NAMESPACE))
        # A bridge without a MAC of its own takes the lowest of its ports', and so another with every instance that
        # comes or goes: the client would talk to an address that nobody has.
        ip_batch(
            f"link add {BRIDGE} address {fence.mac(self.host)} type bridge",
            f"addr add {self.host}/{self.prefix} dev {BRIDGE}",
            f"link set {BRIDGE} up",
            f"netns add {CLIENT_NAMESPACE}",
        )
        _without_ipv6(BRIDGE)
        self._require_routed()
        client = Endpoint(self.client, fence.mac(self.client))
        unfenced = fence.filter_packets(cleanup, fence.FenceClient(client.address, client.mac))
        self._plug(cleanup, CLIENT_NAMESPACE, _CLIENT_LINK, client, isolated=False)
        _without_ipv6("all", CLIENT_NAMESPACE)
        # A new namespace forwards where the host does: an instance's packets would come out of it as the client's.
        _set("net/ipv4/ip_forward", "0", CLIENT_NAMESPACE)
        fence.guard_client(CLIENT_NAMESPACE, self.host, self.subnet)
        # It has no default route: what is neither on the bridge nor enclosed is no instance.
        ip_batch(
            f"-n {CLIENT_NAMESPACE} neigh replace {self.host} lladdr {fence.mac(self.host)} dev eth0 nud permanent"
        )
        passage.require_to_host(CLIENT_NAMESPACE, self.host)
        self._require_bridged_frames(cleanup.journal)
        return unfenced

    def serve_outside(self, client: outside.Outside) -> None:
        """Have a client on another machine call, in place of the one on the bridge.

        Call it before any instance is there. Raises `HostError`.
        """
        assert self._cleanup is not None, "the bridge is there"
        if ipaddress.IPv4Address(client.address) in self.subnet:
            problem = f"the client's address {client.address} is in the subnet {self.subnet} of tare's bridge"
            raise HostError(problem, fix="give another one with --subnet")
        outside.open_to(self._cleanup, client)
        self._outside, self._engines = client, engines.Engines(self._cleanup, None)

    def lead_to(self, cleanup: CleanupStack, port: int, address: str, instance_port: int) -> str:
        """Lead a client on another machine from a port of this host's to an instance's; returns the address to call.

        ``address``: where the client on the bridge calls; a client on another machine calls there what this host
        publishes at `front`. ``cleanup``: the instance's. Raises `HostError`.
        """
        if self._outside is None or address == self._outside.front:
            return address
        for rule in outside.leading_rules(self._outside, port, address, instance_port):
            outside.insert(cleanup, rule)
        return self._outside.front

    def let_ping(self, group: int) -> None:
        """Let programs of this group send echo requests from the client's namespace without rights.

        With a raw socket they could send frames past the rules for what the client sends (`fence.client_rules`).
        """
        _set("net/ipv4/ping_group_range", f"{group} {group}", CLIENT_NAMESPACE)

    def _require_routed(self) -> None:
        """Raise `HostError` where the host's policy routing sends what is for the subnet by another link."""
        got = processes.run(["ip", "-j", "-4", "route", "get", self.client])
        way = str(json.loads(got.text)[0].get("dev", "")) if got.code == 0 else ""
        if way != BRIDGE:
            raise HostError(
                f"the host's routing sends what is for tare's bridge {f'by {way}' if way else 'nowhere'}",
                fix=f"`ip rule add pref 77 to {self.subnet} lookup main` and --subnet {self.subnet}, or another subnet",
            )

    def _require_bridged_frames(self, journal: Journal) -> None:
        address = str(self.subnet[3])
        with CleanupStack(journal) as cleanup:
            cleanup.own(removers.network_namespace(_PROBE))
            ip_batch(f"netns add {_PROBE}")
            self._plug(cleanup, _PROBE, "tareprobe", Endpoint(address, fence.mac(address)))
            passage.require_between(CLIENT_NAMESPACE, _PROBE, address)

    def new_namespace(self, cleanup: CleanupStack, name: str, holder: int | None = None) -> Endpoint:
        """Return a network namespace ``tare-NAME`` with ``eth0`` on the bridge; its path is `namespace_path`.

        ``holder``: a process whose own that namespace already is (`userns.new`).
        """
        self._require_apart()
        address = self._claim()
        endpoint = Endpoint(address, fence.mac(address))
        namespace = f"tare-{name}"
        cleanup.own(removers.network_namespace(namespace))
        ip_batch(f"netns add {namespace}" if holder is None else f"netns attach {namespace} {holder}")
        self._plug(cleanup, namespace, _port(name), endpoint)
        ip_batch(f"-n {namespace} route add default via {self.host}")
        return endpoint

    def give_address(self, name: str, address: str) -> None:
        """Give the link in an instance's namespace its address again, which a stack above it has taken away."""
        words = f"-n tare-{name}"
        ip_batch(
            f"{words} addr replace {address}/{self.prefix} dev eth0",
            f"{words} route replace default via {self.host}",
        )

    def new_endpoint(self, cleanup: CleanupStack, name: str, address: str | None = None) -> tuple[Endpoint, str]:
        """For a platform that makes its link on the bridge itself: the address and MAC, and the link's name, owned.

        ``address``: one that the guest has by itself; host and client are given a route to it, which goes with the
        bridge. Raises `HostError` where it is another's.
        """
        self._require_apart()
        if address is None:
            address = self._claim()
        else:
            self._reach(ipaddress.IPv4Address(address))
        endpoint = Endpoint(address, fence.mac(address))
        outer = _port(name)
        cleanup.own(removers.link(outer))
        ip_batch(*_known(endpoint))
        self._unpinned[name] = (outer, endpoint)
        return endpoint, outer

    def new_tap(
        self, cleanup: CleanupStack, name: str, owner: int = 0, address: str | None = None, *, plugged: bool = True
    ) -> tuple[Endpoint, str]:
        """Return a TAP on the bridge for a guest, which is to have the endpoint's address and MAC; and the TAP's name.

        ``owner``: the user who may open it. ``address``: as of `new_endpoint`. ``plugged``: False leaves the TAP down
        and off the bridge, for a guest that has another one's address. Raises `HostError` where the host cannot make
        one.
        """
        lacking = no_tun()
        if lacking is not None:
            raise lacking
        endpoint, tap = self.new_endpoint(cleanup, name, address)
        ip_batch(
            f"tuntap add {tap} mode tap user {owner}", *([f"link set {tap} master {BRIDGE} up"] if plugged else [])
        )
        if plugged:
            self.pin(name)
        else:
            self._unpinned.pop(name, None)
        return endpoint, tap

    def serve_dhcp(self, cleanup: CleanupStack, mac: str) -> Group:
        """Have a guest's address given to it by DHCP; ``cleanup``: the instance's. Returns the server's control group.

        Raises `HostError`.
        """
        assert self._cleanup is not None, "the bridge is there"
        with self._lock:
            if self._dhcp is None or self._dhcp.ended() is not None:
                self._dhcp = dhcp.start(self._cleanup, self.subnet)
        dhcp.admit(cleanup, mac)
        return self._dhcp.group

    def enclose(self, name: str, pid: int, address: str) -> None:
        """Restrict what a container reaches by the bridge of its engine's (`engines.Engines.enclose`).

        The client gets a route to its own ``address``, for pings; it calls the container at a port of the host's.
        """
        assert self._engines is not None, "the bridge is there"
        self._engines.enclose(f"tare-{name}", pid, address)
        ip_batch(f"-n {CLIENT_NAMESPACE} route replace {address} via {self.host}")

    def reach(self, address: str) -> None:
        """Let the client start connections with a pod at its own address, which is behind this host."""
        ip_batch(f"-n {CLIENT_NAMESPACE} route replace {address} via {self.host}")
        fence.let_client_reach(CLIENT_NAMESPACE, address)

    def close(self) -> None:
        """End the DHCP server, if one was started. The rest of the network is its cleanup's."""
        if self._dhcp is not None:
            self._dhcp.stop()

    def refusal(self, address: str, port: int) -> HostError | None:
        """Return why the client does not reach a listener behind this host, or None if no filter of the host's is seen.

        What is on the bridge itself was tried as it was made.
        """
        if self._outside is not None:
            return None  # that it reaches this host was tried when it came
        bridged = address in self._fixed or (address != self.host and ipaddress.IPv4Address(address) in self.subnet)
        return None if bridged else passage.refused_beyond(CLIENT_NAMESPACE, address, port)

    def pin(self, name: str) -> None:
        """Restrict the port that an instance's platform has made; does nothing where tare made it, or none is."""
        if name in self._unpinned:
            outer, endpoint = self._unpinned.pop(name)
            ip_batch(fence.port_words(outer, isolated=True), fence.forgetting_words(outer))
            fence.pin(outer, endpoint.mac)

    @contextlib.contextmanager
    def joined(self, names: Sequence[str]) -> Iterator[None]:
        """Let the ports of these instances carry frames to each other too, until the context is left.

        A port that is not isolated reaches all others, so these instances are alone on the bridge meanwhile: raises
        `HostError` where another one is there, and so does whoever adds one. What has no port of the bridge (an
        instance on the host's network, or on a bridge of its engine's) reaches its like without this.
        """
        of_these = {_port(name) for name in names}
        ports = _ports() - {_CLIENT_LINK}
        if not ports <= of_these:
            raise HostError("instances are to reach each other, and another one is on the bridge", fix="end it before")
        self._joined = True
        try:
            ip_batch(*(fence.isolation_words(port, isolated=False) for port in sorted(ports)))
            yield
        finally:
            ip_batch(*(fence.isolation_words(port, isolated=True) for port in sorted(ports & _ports())))
            self._joined = False

    def listener(self) -> socket.socket:
        """Return a socket on the bridge that an instance's agent may connect to. Raises `HostError` when none is free.

        Two threads may be bound to one port until one of them listens: the other then takes the next.
        """
        while True:
            listener = socket.socket()
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                fence.bind_allowed(listener, self.host)
                listener.listen()
            except BaseException as error:
                listener.close()
                if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                    continue
                raise
            return listener

    def _require_apart(self) -> None:
        """Raise `HostError` while instances are `joined`: they would reach who comes to the bridge."""
        if self._joined:
            raise HostError("another instance is to start while some reach each other", fix="start all of them before")

    def _claim(self) -> str:
        address = str(self.subnet[next(self._hosts)])
        return address if address not in self._fixed else self._claim()

    def _reach(self, address: ipaddress.IPv4Address) -> None:
        """Make a guest's own address one of the bridge's."""
        fix = "give the guest another, or the campaign another subnet with --subnet"
        if str(address) in {self.host, self.client}:
            whose = "the host's" if str(address) == self.host else "the client's"
            raise HostError(f"the guest's own address {address} is {whose} on the bridge", fix=fix)
        if address not in self.subnet and str(address) not in self._fixed:
            use = subnets.met(ipaddress.IPv4Network(address))[1]
            if use is not None:
                raise HostError(f"the guest's own address {address} is taken: the host has {use}", fix=fix)
            route = f"route replace {address} dev"
            ip_batch(f"{route} {BRIDGE}", f"-n {CLIENT_NAMESPACE} {route} eth0")
            fence.let_client_reach(CLIENT_NAMESPACE, str(address))
        self._fixed.add(str(address))

    def _plug(
        self, cleanup: CleanupStack, namespace: str, outer: str, endpoint: Endpoint, *, isolated: bool = True
    ) -> None:
        cleanup.own(removers.link(outer))
        address = f"{endpoint.address}/{self.prefix}"
        ip_batch(
            f"link add {outer} type veth peer name eth0 address {endpoint.mac} netns {namespace}",
            f"link set {outer} master {BRIDGE} up",
            fence.port_words(outer, isolated=isolated),
            f"-n {namespace} link set lo up",
            f"-n {namespace} addr add {address} dev eth0",
            f"-n {namespace} link set eth0 up",
            *_known(endpoint)[: None if isolated else 1],  # the client knows itself
        )
        fence.pin(outer, endpoint.mac)


def _port(name: str) -> str:
    """Return the name of an instance's port of the bridge."""
    return f"tare{name}"[:15]


def _ports() -> set[str]:
    """Return the names of the bridge's ports."""
    listing = processes.run(["ip", "-j", "link", "show", "master", BRIDGE]).require().text
    return {port["ifname"] for port in json.loads(listing or "[]")}


def _known(endpoint: Endpoint) -> list[str]:
    """Commands that fix whose MAC an address has, on the host and in the client: no answer to ARP changes that."""
    words = f"neigh replace {endpoint.address} lladdr {endpoint.mac} dev"
    return [f"{words} {BRIDGE} nud permanent", f"-n {CLIENT_NAMESPACE} {words} eth0 nud permanent"]


def _without_ipv6(link: str, namespace: str | None = None) -> None:
    """No address that instances could reach past the filter's rules, which are of IPv4; no router that they pose as."""
    if Path("/proc/sys/net/ipv6/conf", link).exists():
        _set(f"net/ipv6/conf/{link}/disable_ipv6", "1", namespace)


def _set(setting: str, value: str, namespace: str | None = None) -> None:
    """Write a setting of a network namespace's, by default of the host's."""
    entered = ["ip", "netns", "exec", namespace] if namespace else []
    processes.run([*entered, "tee", f"/proc/sys/{setting}"], stdin=value.encode()).require()


def namespace_path(name: str) -> Path:
    """Return where the namespace made by `Network.new_namespace` can be joined."""
    return Path("/run/netns", f"tare-{name}")


def entered(name: str) -> list[str]:
    """Return the command prefix that enters the namespace made by `Network.new_namespace`."""
    return ["nsenter", f"--net={namespace_path(name)}", "--"]


def silence_ping(name: str) -> None:
    """Keep the kernel from answering pings in a namespace, so that only a network stack above it does."""
    _set("net/ipv4/icmp_echo_ignore_all", "1", f"tare-{name}")


def no_tun() -> HostError | None:
    """Return why no TAP can be made here, or None; the first TAP may load the kernel's module for it."""
    if TUN.exists() and not TUN_DRIVER.exists() and _can_be_loaded("tun"):
        return None  # opening it would load it
    try:
        os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        fix = f"modprobe tun; in a container, hand it {TUN} (`mknod {TUN} c 10 200`)"
        return HostError(f"no TAP can be made: {TUN}: {error.strerror}", fix=fix)
    return None


def _can_be_loaded(module: str) -> bool:
    return processes.find("modinfo") is not None and processes.run(["modinfo", module], time_limit_s=5).code == 0


def ip_batch(*lines: str) -> None:
    """Run ``ip`` commands in order; one process for each run of lines in the same namespace, none for no lines."""
    batch: list[str] = []
    namespace = ""
    for line in lines:
        words = line.split(maxsplit=2)
        where, command = (words[1], words[2]) if words[0] == "-n" else ("", line)
        if where != namespace and batch:
            _run_batch(namespace, batch)
            batch = []
        namespace = where
        batch.append(command)
    if batch:
        _run_batch(namespace, batch)


def _run_batch(namespace: str, commands: Sequence[str]) -> None:
    argv = ["ip", *(["-n", namespace] if namespace else []), "-batch", "-"]
    processes.run(argv, stdin=("\n".join(commands) + "\n").encode()).require()
