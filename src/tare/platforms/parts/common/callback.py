"""The stream of a guest whose agent connects to the host, which listens since before the guest exists."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tare.errors import PlatformError
from tare.host import processes
from tare.platforms.base import Address, Instance, Instant, LaunchSpec
from tare.platforms.watchers.marks import EchoPing, FirstByte
from tare.session.byte_streams import SocketStream
from tare.timeouts import stretched, until

#: Seconds between two checks that the machine still runs.
TURN_S = 0.2


def connected(
    listener: socket.socket, process: subprocess.Popen[bytes], limit_s: float, monitor: str, peer: str | None = None
) -> socket.socket:
    """Return the agent's connection. ``peer``: the only address it may come from.

    Raises `PlatformError` when the machine ends before, or the limit is over; then its process still runs.
    """
    deadline = until(limit_s)
    listener.settimeout(TURN_S)
    fix = "see the console kept in the campaign"
    while time.monotonic() < deadline:
        try:
            connection, address = listener.accept()
        except TimeoutError:
            if process.poll() is not None:
                raise PlatformError(f"{monitor} ended before its guest's agent spoke", fix=fix) from None
            continue
        if peer is None or address[0] == peer:
            return connection
        connection.close()
    raise PlatformError(f"the agent of {monitor}'s guest did not connect within {stretched(limit_s):.0f} s", fix=fix)


@dataclass(frozen=True, slots=True)
class StartedMachine:
    """A machine that was started, and how it ends.

    ``process``: ends with the machine; ``what``: its monitor, for messages; ``off``: what else ends it; ``gone``:
    returns when it has ended, by default with the process.
    """

    started: Instant
    process: subprocess.Popen[bytes]
    what: str
    off: Callable[[], None] = lambda: None
    gone: Callable[[], object] | None = None


def come_up(
    spec: LaunchSpec,
    listener: socket.socket,
    begun: StartedMachine,
    address: str,
    *,
    peer: str | None = None,
    tell: Callable[[], None] = lambda: None,
) -> Instance:
    """Return the instance at this address, once its agent has connected. ``peer``: as of `connected`.

    ``tell``: what the monitor is still to be told. Raises what that or `connected` does; the machine has ended then.
    """
    ping = EchoPing(address) if spec.measured else None
    try:
        tell()
        connection = connected(listener, begun.process, limit_s=spec.start_limit_s, monitor=begun.what, peer=peer)
    except BaseException:
        if ping is not None:
            ping.wait(0)
        begun.off()
        processes.end(begun.process)
        raise
    if peer is not None:  # it is the guest's network that it came by, and messages are small
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = CallbackStream(connection, begun.process, begun.off, begun.gone)
    reached = Address(address, spec.port, spec.port, address)
    return Instance(spec, stream, begun.started, reached, FirstByte(stream.fileno()), ping)


class CallbackStream(SocketStream):
    """The agent's connection. It breaks when the machine's process ends, and closing it ends the machine.

    Nothing of the guest is kept, so it is not asked to switch itself off: Firecracker has no switch for that.
    """

    def __init__(
        self,
        connection: socket.socket,
        process: subprocess.Popen[bytes],
        off: Callable[[], None] = lambda: None,
        gone: Callable[[], object] | None = None,
    ) -> None:
        """``off``: what else ends the machine; ``gone``: returns when it has ended, by default with the process."""
        super().__init__(connection)
        self._process = process
        self._off = off
        self._gone = gone or process.wait
        self._open = True
        self._watch = threading.Thread(target=self._break, args=(connection,), daemon=True)
        self._watch.start()

    def close(self) -> None:
        """End the machine, then the connection."""
        if self._open:
            self._open = False
            self._off()
            processes.end(self._process)
            self._watch.join()
            super().close()

    def _break(self, connection: socket.socket) -> None:
        # A network connection does not learn of its guest's death by itself.
        self._gone()
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
