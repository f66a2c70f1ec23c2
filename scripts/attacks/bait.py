"""Services of the host's, and a machine behind it, that say a word: whoever knows it has been there."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: The machine behind the host, which has the metadata service's address where there is no such service.
BEYOND, LINK = "attack-beyond", "attackbeyond"
BEHIND, METADATA = "198.18.77.2", "169.254.169.254"
_SAYS = """
import socket, sys
listeners = [socket.create_server((address, 80)) for address in sys.argv[2:]]
print("up", flush=True)
import selectors
ready = selectors.DefaultSelector()
for listener in listeners:
    ready.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in ready.select():
        with key.fileobj.accept()[0] as connection:
            connection.sendall(sys.argv[1].encode())
"""


@dataclass(slots=True)
class Bait:
    """Ports of the host's services, addresses behind it, and the datagrams that came so far."""

    word: str
    everywhere: int = 0
    loopback: int = 0
    everywhere6: int = 0
    datagrams: int = 0
    behind: list[str] = field(default_factory=list)
    came: list[str] = field(default_factory=list)

    def targets(self, addresses: list[str]) -> list[str]:
        """Where a guest may reach something, as HOST:PORT; ``addresses``: more of the host's, as a guest sees them."""
        own = [*addresses, *addresses_of_host()]
        of_ipv4 = [address for address in dict.fromkeys([*own, "127.0.0.1", "10.0.2.2"]) if ":" not in address]
        of_ipv6 = [address for address in dict.fromkeys([*own, "::1", "fec0::2"]) if ":" in address]
        ports = (self.everywhere, self.loopback)
        return [
            *(f"{address}:{port}" for address in of_ipv4 for port in ports),
            *(f"[{address}]:{self.everywhere6}" for address in of_ipv6 if self.everywhere6),
            *(f"gateway:{port}" for port in ports),
            *(f"{address}:80" for address in self.behind),
        ]

    def datagram_targets(self, addresses: list[str]) -> list[str]:
        """The same of datagrams, with broadcasts."""
        own = [address for address in (*addresses, *addresses_of_host()) if ":" not in address]
        return [
            f"{address}:{self.datagrams}" for address in dict.fromkeys([*own, "10.0.2.2", "255.255.255.255", "gateway"])
        ]


def addresses_of_host() -> list[str]:
    """All of the host's addresses but those of one link alone."""
    done = subprocess.run(["ip", "-j", "addr", "show", "up"], capture_output=True, check=True)
    links = json.loads(done.stdout or b"[]")
    entries = [entry for link in links for entry in link.get("addr_info", ())]
    return [entry["local"] for entry in entries if entry.get("scope") == "global"]


@contextlib.contextmanager
def laid(word: str) -> Iterator[Bait]:
    """Lay the bait; it is taken away when the context is left."""
    bait = Bait(word)
    with contextlib.ExitStack() as ends:
        every, loopback = (ends.enter_context(socket.create_server((host, 0))) for host in ("", "127.0.0.1"))
        bait.everywhere, bait.loopback = every.getsockname()[1], loopback.getsockname()[1]
        listeners = [every, loopback]
        if Path("/proc/sys/net/ipv6").exists():
            listeners.append(ends.enter_context(socket.create_server(("::", 0), family=socket.AF_INET6)))
            bait.everywhere6 = listeners[-1].getsockname()[1]
        datagrams = ends.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("", 0))
        bait.datagrams = datagrams.getsockname()[1]
        for listener in listeners:
            threading.Thread(target=_serve, args=(listener, word.encode()), daemon=True).start()
        threading.Thread(target=_receive, args=(datagrams, bait.came), daemon=True).start()
        bait.behind = ends.enter_context(_machine_behind(word))
        try:
            yield bait
        finally:
            for listener in (*listeners, datagrams):  # whoever waits in it wakes up
                with contextlib.suppress(OSError):
                    listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, word: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(word)


def _receive(datagrams: socket.socket, came: list[str]) -> None:
    with contextlib.suppress(OSError):
        while datagram := datagrams.recv(200):
            came.append(datagram.decode(errors="replace"))


@contextlib.contextmanager
def _machine_behind(word: str) -> Iterator[list[str]]:
    """A network namespace that the host has routes to; the metadata service's address is left to a real one."""
    of_it = [BEHIND] if _answers(METADATA) else [BEHIND, METADATA]
    inside = ["ip", "-n", BEYOND]
    commands = [
        ["ip", "netns", "add", BEYOND],
        ["ip", "link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", BEYOND],
        ["ip", "addr", "add", "198.18.77.1/30", "dev", LINK],
        ["ip", "link", "set", LINK, "up"],
        [*inside, "link", "set", "lo", "up"],
        [*inside, "link", "set", "eth0", "up"],
        [*inside, "addr", "add", f"{BEHIND}/30", "dev", "eth0"],
        [*inside, "route", "add", "default", "via", "198.18.77.1"],
    ]
    if METADATA in of_it:
        commands += [
            [*inside, "addr", "add", f"{METADATA}/32", "dev", "lo"],
            ["ip", "route", "add", f"{METADATA}/32", "via", BEHIND],
        ]
    machine = None
    try:
        for argv in commands:
            subprocess.run(argv, check=True)
        argv = ["ip", "netns", "exec", BEYOND, sys.executable, "-I", "-c", _SAYS, word, *of_it]
        machine = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert machine.stdout is not None
        machine.stdout.readline()
        yield [BEHIND, METADATA]
    finally:
        if machine is not None:
            machine.kill()
            machine.communicate()
        subprocess.run(["ip", "link", "del", LINK], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "netns", "del", BEYOND], check=False, stderr=subprocess.DEVNULL)


def _answers(address: str) -> bool:
    try:
        socket.create_connection((address, 80), timeout=1).close()
    except OSError:
        return False
    return True
