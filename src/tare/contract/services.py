"""Bait on the host's networks: services of the host's own, and a machine behind the host, which say a secret."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import selectors
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from tare.host import processes
from tare.host.network import bridge, passage
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.timeouts import stretched

#: Addresses of clouds' services that give a machine its credentials, by the agent's names for them.
METADATA = {"metadata": "169.254.169.254", "metadata6": "fd00:ec2::254"}
HTTP = 80
#: By then a service on a network next door has answered.
ANSWER_LIMIT_S = 1.0
#: The network namespace of the machine behind the host, and the host's link to it.
BEYOND, _LINK = "tare-beyond", "tarebeyond"
#: Maximum number of the host's addresses that a guest gets.
MOST_ADDRESSES = 64
_IPV4, _IPV6 = Path("/proc/sys/net/ipv4/conf"), Path("/proc/sys/net/ipv6/conf")
_VSOCK = Path("/dev/vsock")
_GET_LOCAL_CID = 0x7B9  # IOCTL_VM_SOCKETS_GET_LOCAL_CID of linux/vm_sockets.h


@contextlib.contextmanager
def listening(secret: str) -> Iterator[dict[str, str]]:
    """Services of the host's on every address, on its loopback, by IPv6, by UDP and by vsock.

    Yields what a guest is told of them: their ports, and the host's addresses.
    """
    with contextlib.ExitStack() as ends:
        every, loopback = (ends.enter_context(socket.create_server((host, 0))) for host in ("", "127.0.0.1"))
        datagrams = ends.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("", 0))
        listeners = {"every": every, "loopback": loopback, "datagrams": datagrams}
        if _IPV6.exists():
            listeners["every6"] = ends.enter_context(socket.create_server(("::", 0), family=socket.AF_INET6))
        ports = {name: str(listener.getsockname()[1]) for name, listener in listeners.items()}
        with contextlib.suppress(OSError):  # the kernel has no such sockets, or no transport of theirs
            vsock = ends.enter_context(socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
            vsock.bind((socket.VMADDR_CID_ANY, socket.VMADDR_PORT_ANY))
            vsock.listen()
            listeners["vsock"] = vsock
            ports["vsock"] = f"{_own_cid()}:{vsock.getsockname()[1]}"
        ends.enter_context(_served(list(listeners.values()), secret))
        yield ports | {"addresses": ",".join(addresses())}


@contextlib.contextmanager
def beyond(cleanup: CleanupStack, secret: str) -> Iterator[dict[str, str]]:
    """A machine behind the host at the metadata service's addresses, where the host reaches no real one there.

    Yields the addresses that there are, by the names of `METADATA`.
    """
    missing = {name: address for name, address in METADATA.items() if not _is_there(address)}
    if missing:
        _connect_beyond(cleanup, list(missing.values()))
    with contextlib.ExitStack() as ends:
        listeners = []
        for address in missing.values():
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with contextlib.suppress(OSError):  # a kernel without IPv6
                listener = ends.enter_context(passage.socket_in(BEYOND, family, socket.SOCK_STREAM))
                listener.bind((address, HTTP))
                listener.listen()
                listeners.append(listener)
        ends.enter_context(_served(listeners, secret))
        yield {name: address for name, address in METADATA.items() if name not in missing or answers(address)}


def addresses() -> list[str]:
    """The host's addresses, IPv4 and IPv6; those of a link alone are among them."""
    links = json.loads(processes.run(["ip", "-j", "addr", "show"]).require().text or "[]")
    own = [entry["local"] for link in links for entry in link.get("addr_info", ()) if "local" in entry]
    return own[:MOST_ADDRESSES]


def answers(address: str) -> bool:
    """Return True if somebody takes connections from the host at an address, on the port for HTTP."""
    try:
        with socket.create_connection((address, HTTP), timeout=stretched(ANSWER_LIMIT_S)):
            return True
    except OSError:
        return False


@functools.cache
def _is_there(address: str) -> bool:
    return answers(address)


def _connect_beyond(cleanup: CleanupStack, of_machine: Sequence[str]) -> None:
    """Make a network namespace with these addresses behind the host, and the host's routes to it.

    Either side of the link needs no address of a network: the host answers for whomever it has a route to.
    """
    cleanup.own(removers.link(_LINK), removers.network_namespace(BEYOND))
    inside = f"-n {BEYOND}"
    lines = [f"netns add {BEYOND}", f"link add {_LINK} type veth peer name eth0 netns {BEYOND}"]
    lines += [f"link set {_LINK} up", f"{inside} link set lo up", f"{inside} link set eth0 up"]
    for address in of_machine:
        if ":" not in address:
            lines += [f"{inside} addr add {address}/32 dev eth0", f"{inside} route add default dev eth0"]
            lines += [f"route add {address}/32 dev {_LINK}"]
        elif _IPV6.exists():
            lines += [f"addr add fe80::1/64 dev {_LINK} nodad", f"{inside} addr add fe80::2/64 dev eth0 nodad"]
            lines += [f"{inside} addr add {address}/128 dev eth0 nodad", f"route add {address}/128 dev {_LINK}"]
            lines += [f"{inside} route add ::/0 via fe80::1 dev eth0"]
    bridge.ip_batch(*lines)
    (_IPV4 / _LINK / "proxy_arp").write_text("1")


def _own_cid() -> int:
    """The number of this machine on its hypervisor's virtio sockets; that of a loopback where it has none."""
    try:
        with _VSOCK.open("rb") as device:
            answer = fcntl.ioctl(device, _GET_LOCAL_CID, bytes(4))
        return int(struct.unpack("=I", answer)[0])
    except OSError:
        return 1


@contextlib.contextmanager
def _served(listeners: Sequence[socket.socket], secret: str) -> Iterator[None]:
    """Say the secret to whoever connects or sends a datagram, until the context is left."""
    ended, end = os.pipe()
    with selectors.DefaultSelector() as ready:
        ready.register(ended, selectors.EVENT_READ)
        for listener in listeners:
            ready.register(listener, selectors.EVENT_READ)
        thread = threading.Thread(target=_serve, args=(ready, ended, secret.encode()))
        thread.start()
        try:
            yield
        finally:
            os.close(end)
            thread.join()
            os.close(ended)


def _serve(ready: selectors.BaseSelector, ended: int, secret: bytes) -> None:
    while True:
        for key, _ in ready.select():
            if key.fd == ended:
                return
            assert isinstance(key.fileobj, socket.socket)
            with contextlib.suppress(OSError):  # whoever asked is gone
                _say(key.fileobj, secret)


def _say(listener: socket.socket, secret: bytes) -> None:
    if listener.type == socket.SOCK_DGRAM:
        listener.sendto(secret, listener.recvfrom(64)[1])
        return
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(stretched(ANSWER_LIMIT_S))
        connection.sendall(secret)
