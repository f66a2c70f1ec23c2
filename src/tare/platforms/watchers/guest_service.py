"""The readiness of a guest without an agent, seen from outside: requests are sent until it answers."""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare import expressions
from tare.errors import HostError
from tare.host import instance_console
from tare.host.network import fence
from tare.platforms.watchers.marks import Pace, echo_request, is_reply
from tare.timeouts import stretched, until

#: The known kinds of services; a `GuestService` names the port.
UDP_ECHO, TCP_ECHO, HTTP = "udp-echo", "tcp-echo", "http"
#: No ports: echo requests, and a line on the console.
PING, CONSOLE = "ping", "console"
#: Pause between two requests, at first (`Pace`).
INTERVAL_S = 0.005
CONNECT_INTERVAL_S = 0.02
#: After so long, requests are sent from new sockets, which answers to earlier ones do not reach.
ROUND_S = 1.0
#: Or after this share of the time waited so far: a slow guest may answer then.
ROUND_SHARE = 0.1
ANSWER_LIMIT_S = 2.0
#: A guest may end once it has answered: so long its console is read on.
LAST_WORDS_S = 0.3
#: Earlier bytes of the console that are searched again together with new ones: the pattern may begin there.
CONSOLE_BEFORE = 4096


@dataclass(frozen=True, slots=True)
class GuestService:
    """A service of a guest: requests to it are answered."""

    kind: str
    host: str
    port: int
    path: str = "/"  # of HTTP; for a console the pattern, and ``host`` is its file
    inside: int | None = None  # the guest's own port, where another of the host's is forwarded to it
    counts: bool = True  # whether it is an answer; else it is only awaited as well

    def __str__(self) -> str:
        if self.kind == CONSOLE:
            return f"by {self.path!r} on its console"
        if self.kind == PING:
            return f"ping at {self.host}"
        if self.inside is not None and self.inside != self.port:
            return f"{self.kind} on its port {self.inside} (by port {self.port} of {self.host})"
        return f"{self.kind} on port {self.port} of {self.host}"


class FirstAnswer:
    """Sends requests to every service until it has answered once, and notes when."""

    def __init__(self, services: Sequence[GuestService]) -> None:
        self._at_ns: dict[GuestService, int] = {}
        self._services = services
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(service,), daemon=True) for service in services]
        for thread in self._threads:
            thread.start()

    @property
    def at_ns(self) -> int | None:
        """Host's monotonic ns of the first answer of any service; None before that."""
        return min((at for service, at in self._at_ns.items() if service.counts), default=None)

    def again(self) -> FirstAnswer:
        """Ask the same services anew, but for a console's: what it once showed it does not show again."""
        return FirstAnswer([service for service in self._services if service.kind != CONSOLE])

    def silent(self) -> list[GuestService]:
        """Return the services that have not answered yet."""
        return [service for service in self._services if service not in self._at_ns]

    def wait(self, time_limit_s: float, gone: Callable[[], bool] = lambda: False) -> int | None:
        """Return the time of the first answer in ns, once all have answered; None when one has not within the limit.

        ``gone``: whether the instance has ended, which ends the wait.
        """
        deadline = until(time_limit_s)
        while self.silent() and time.monotonic() < deadline:
            if gone():  # its last words may be on their way
                deadline = min(deadline, until(LAST_WORDS_S))
                gone = bool
            time.sleep(0.005)
        self._stop.set()
        for thread in self._threads:
            thread.join()
        return None if self.silent() else self.at_ns

    def _ask(self, service: GuestService) -> None:
        ways = {UDP_ECHO: _ask_udp, TCP_ECHO: _ask_tcp, HTTP: _ask_http, PING: _ask_ping}
        ask = ways.get(service.kind) or _Console(service).asked
        pace = Pace()
        while not self._stop.is_set():
            try:
                answered = ask(service, pace)
            except (OSError, HostError):  # not listening yet, no route yet, or all of tare's own ports are in use
                answered = False
            if answered:
                self._at_ns[service] = time.monotonic_ns()
                return
            time.sleep(INTERVAL_S if service.kind == CONSOLE else pace.pause_s(INTERVAL_S))


def _round_s(pace: Pace) -> float:
    """Return how long the next requests are sent from the same sockets, in seconds."""
    return max(ROUND_S, pace.waited_s() * ROUND_SHARE)


def _ask_udp(service: GuestService, pace: Pace) -> bool:
    token, round_s = secrets.token_bytes(16), _round_s(pace)
    deadline = time.monotonic() + round_s
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        fence.bind_allowed(asker, "")
        asker.connect((service.host, service.port))
        while time.monotonic() < deadline:  # an answer to any of them will do, however late
            asker.send(token)
            turn_s = pace.pause_s(INTERVAL_S)
            asker.settimeout(turn_s)
            try:
                if asker.recv(64) == token:
                    return True
            except TimeoutError:
                continue
    return False


def _ask_tcp(service: GuestService, pace: Pace) -> bool:
    token = secrets.token_bytes(16)
    with _connected(service, pace) as asker:
        asker.sendall(token)
        return _received(asker, len(token)) == token


def _ask_http(service: GuestService, pace: Pace) -> bool:
    request = f"GET {service.path} HTTP/1.0\r\nHost: {service.host}\r\n\r\n"
    with _connected(service, pace) as asker:
        asker.sendall(request.encode())
        return is_page(_received(asker, 12))


def _ask_ping(service: GuestService, pace: Pace) -> bool:
    identity, round_s = secrets.randbelow(1 << 16), _round_s(pace)
    deadline = time.monotonic() + round_s
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as asker:
        sequence = 0
        while time.monotonic() < deadline:
            sequence = (sequence + 1) & 0xFFFF
            turn_s = pace.pause_s(INTERVAL_S)
            asker.settimeout(turn_s)
            asker.sendto(echo_request(identity, sequence), (service.host, 0))
            with contextlib.suppress(TimeoutError):
                packet, sender = asker.recvfrom(2048)
                if sender[0] == service.host and is_reply(packet, identity):
                    return True
    return False


def _connected(service: GuestService, pace: Pace) -> socket.socket:
    """Return a connection.

    One alone would be tried again by the kernel after a second only: so several, one after another.
    """
    pending: list[socket.socket] = []
    round_s = _round_s(pace)
    deadline = time.monotonic() + round_s
    try:
        while time.monotonic() < deadline:
            pending.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
            pending[-1].connect_ex((service.host, service.port))
            _, ready, _ = select.select([], pending, [], pace.pause_s(CONNECT_INTERVAL_S))
            for connection in ready:
                pending.remove(connection)
                if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    connection.settimeout(stretched(ANSWER_LIMIT_S))
                    return connection
                connection.close()
                time.sleep(INTERVAL_S)
    finally:
        for connection in pending:
            connection.close()
    raise TimeoutError


class _Console:
    """The output of a console. The service's ``host`` is the file, its ``path`` the pattern."""

    def __init__(self, service: GuestService) -> None:
        self._follower = instance_console.Follower(Path(service.host))
        self._pattern = expressions.compiled(service.path)
        self._recent = b""

    def asked(self, _service: GuestService, _pace: Pace) -> bool:
        """Return True if the pattern matches in the new output together with a little of the earlier one."""
        new = self._follower.more()
        self._recent = self._recent[-CONSOLE_BEFORE:] + new
        text = self._recent.replace(b"\r", b"").decode(errors="replace")
        return bool(new) and self._pattern.search(text) is not None


def is_page(start: bytes) -> bool:
    """Return True if an answer's first 12 bytes are those of an HTTP answer that is no error."""
    return start[:7] == b"HTTP/1." and start[8:9] == b" " and start[9:12].isdigit() and start[9:10] in b"23"


def _received(asker: socket.socket, size: int) -> bytes:
    """``size`` bytes, or as many as came within the limit, in however many pieces."""
    deadline = until(ANSWER_LIMIT_S)
    received = b""
    while len(received) < size and (left_s := deadline - time.monotonic()) > 0:
        if not select.select([asker], [], [], left_s)[0] or not (piece := asker.recv(size - len(received))):
            break
        received += piece
    return received
