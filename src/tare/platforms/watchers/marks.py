"""Watchers of a sandbox's start, from outside, while the platform's own start command still runs."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Callable

from tare.errors import HostError
from tare.host.network import fence
from tare.timeouts import stretched, until

#: An echo request is sent this often until one is answered, at first (`Pace`).
PING_INTERVAL_S = 0.001
#: A pause between two requests is this share of the time waited so far, where that is more.
RESOLUTION = 1 / 500
#: Linux's number; Python's socket module does not name it.
SO_TIMESTAMPNS = 35
#: The kind of socket that sends and receives echo requests and replies, as `socket.socket` has it.
ECHO = (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
_ECHO_REQUEST, _ECHO_REPLY = 8, 0


class _Mark:
    """Waits in a thread of its own for one mark of a start, and notes its time: host's monotonic ns."""

    def __init__(self) -> None:
        self.at_ns: int | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def wait(self, time_limit_s: float) -> int | None:
        """Return the time of the mark in ns; None when it was not reached within the limit.

        The thread ends with this.
        """
        self._thread.join(stretched(time_limit_s))
        self._stop.set()
        self._thread.join()
        return self.at_ns

    def _watch(self) -> None:
        raise NotImplementedError


class FirstByte(_Mark):
    """Notes when a descriptor first has something to read, without reading it."""

    def __init__(self, fileno: int) -> None:
        self._fileno = fileno
        super().__init__()

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._fileno, select.POLLIN)
        while not self._stop.is_set():
            for _, events in poll.poll(100):
                if events & select.POLLIN:
                    self.at_ns = time.monotonic_ns()
                return


class Pace:
    """The interval of requests to a silent guest: longer the longer it is silent.

    One that is emulated in an emulated host starts for minutes and takes 10 to 20 ms a request: with more than it can
    answer it would never come to a fresh one.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()

    def waited_s(self) -> float:
        """For how long it has been asked, in seconds."""
        return time.monotonic() - self._began

    def pause_s(self, least_s: float) -> float:
        """Return the pause before the next request, in seconds."""
        return max(least_s, self.waited_s() * RESOLUTION)


class EchoPing(_Mark):
    """Sends echo requests to an address until one is answered, and notes when the answer was read."""

    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def _watch(self) -> None:
        with socket.socket(*ECHO) as echo:
            if first_reply(echo, self._address, self._stop.is_set):
                self.at_ns = time.monotonic_ns()


def first_reply(echo: socket.socket, address: str, over: Callable[[], bool]) -> bool:
    """Send echo requests by a socket (of the kind `ECHO`) until one is answered; False where it is ``over`` before."""
    identity = echo.fileno() & 0xFFFF
    sequence = 0
    pace = Pace()
    while not over():
        sequence = (sequence + 1) & 0xFFFF
        turn_s = pace.pause_s(PING_INTERVAL_S)
        echo.settimeout(turn_s)
        try:
            echo.sendto(echo_request(identity, sequence), (address, 0))
            packet, sender = echo.recvfrom(2048)
        except OSError:  # no answer yet, or no route yet
            time.sleep(turn_s)
            continue
        if sender[0] == address and is_reply(packet, identity):
            return True
    return False


def echo_request(identity: int, sequence: int) -> bytes:
    """Return an ICMP echo request without data (RFC 792)."""
    header = struct.pack("!BBHHH", _ECHO_REQUEST, 0, 0, identity, sequence)
    return struct.pack("!BBHHH", _ECHO_REQUEST, 0, internet_checksum(header), identity, sequence)


def is_reply(packet: bytes, identity: int) -> bool:
    """Return True if an IPv4 packet is the answer to our echo request."""
    body = packet[(packet[0] & 0x0F) * 4 :]
    if len(body) < 8:
        return False
    kind, _, _, answered, _ = struct.unpack("!BBHHH", body[:8])
    return bool(kind == _ECHO_REPLY and answered == identity)


def internet_checksum(data: bytes) -> int:
    """Return the ones' complement sum of RFC 1071; ``data`` of even length."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


class Datagram:
    """Receives the agents' datagrams on the host's address on the bridge, with the kernel's own receive timestamps.

    The text in each shows which instance sent it: it is known to nobody until that instance has sent it.
    """

    def __init__(self, host: str) -> None:
        self._sockets = [_bound(host)]
        self.host = host
        self.port: int = self._sockets[0].getsockname()[1]

    def far_port(self) -> int:
        """Return the port for instances on another machine, which send to the address by which they reach this host."""
        if len(self._sockets) == 1:
            self._sockets.append(_bound(""))
        return int(self._sockets[1].getsockname()[1])

    def wait(self, token: bytes, time_limit_s: float) -> int | None:
        """CLOCK_REALTIME ns at which the kernel received the datagram with this text; None: it never came."""
        deadline = until(time_limit_s)
        while (remaining_s := deadline - time.monotonic()) > 0:
            for ready in select.select(self._sockets, [], [], remaining_s)[0]:
                try:
                    data, ancillary, _, _ = ready.recvmsg(256, 256)
                except BlockingIOError:  # its checksum was wrong, which shows when it is read
                    continue
                if data == token:
                    return _timestamp(ancillary)
        return None

    def close(self) -> None:
        """Close the sockets."""
        for each in self._sockets:
            each.close()


def _bound(host: str) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    bound.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    try:
        fence.bind_allowed(bound, host)
    except HostError:
        bound.close()
        raise
    return bound


def _timestamp(ancillary: list[tuple[int, int, bytes]]) -> int | None:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("qq", data[:16])
            return int(seconds) * 1_000_000_000 + int(nanoseconds)
    return None
