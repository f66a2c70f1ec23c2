"""The guest channel of a machine that lives without a campaign's session: its agent is asked as a guest agent is."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tare.errors import PlatformError
from tare.platforms.base import GuestFiles
from tare.platforms.parts.machines import vm
from tare.session import ByteStream, Session, SocketStream

#: Time limit of the program that is the instance.
PROGRAM_LIMIT_S = 3600.0
_WAIT = 'until [ -s "/data/$1" ]; do sleep 0.05; done'
_ASK = 'touch "/data/$1"; until [ -e "/data/$2" ]; do sleep 0.01; done; cat "/data/$2"; rm "/data/$2"'


class Accept(Protocol):
    """Wait for the connection of a machine, at most ``limit_s``, and return its stream."""

    def __call__(self, listener: socket.socket, limit_s: float) -> ByteStream: ...


@dataclass(slots=True)
class GuestChannel:
    """The agent's port of a machine, from the moment at which its monitor connects."""

    listener: socket.socket
    program: Sequence[str]  # begun once the guest is up
    limit_s: float  # of its start, and of a copy's: many may start at once
    #: by default that of a machine's monitor
    accept: Accept = lambda listener, limit_s: SocketStream(vm.accept(listener, lambda: False, limit_s=limit_s))
    _session: Session | None = field(default=None)
    _expected: Session | None = field(default=None)

    def open(self) -> bytes:
        """Wait until the guest is up, and begin its program. Raises `PlatformError`, `SessionError`."""
        stream = self.accept(self.listener, limit_s=self.limit_s)
        try:
            self._session = Session.open(stream, time_limit_s=self.limit_s)
        except BaseException:
            stream.close()
            raise
        self._session.start(self.program, time_limit_s=PROGRAM_LIMIT_S)
        return b"up"

    def run(self, argv: Sequence[str]) -> bytes:
        """Run a command in the guest and return what it printed. Raises `PlatformError`, `SessionError`."""
        done = self._opened().execute(argv)
        if done.code != 0:
            raise PlatformError(f"`{' '.join(argv)}` in the guest ended with {done.code}")
        return done.stdout

    def reopen(self) -> bytes:
        """Take up the session in the restored guest."""
        self._opened().close()
        return self.take_up(self)

    def take_up(self, former: GuestChannel) -> bytes:
        """Take up the session of a guest in the one that was restored from its snapshot."""
        self._take_up(former._opened())
        return b"here"

    def expect(self, former: GuestChannel) -> None:
        """Let the next request take up the session of a guest whose agent connects anew (``--again``)."""
        self._expected = former._known()

    def forget_waiting(self) -> None:
        """Drop connections that nobody has taken up, of a guest that is gone."""
        self.listener.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.listener.accept()[0].close()

    def files(self, stood_ns: Callable[[], int]) -> GuestFiles:
        """Return the guest's files in /data. ``stood_ns``: as of `GuestFiles`."""
        return GuestFiles(
            lambda name: self.run(["sh", "-c", _WAIT, "sh", name]),
            lambda asked, answered: self.run(["sh", "-c", _ASK, "sh", asked, answered]).decode(errors="replace"),
            stood_ns,
        )

    def switch_off(self) -> bytes:
        """Ask the guest to switch itself off."""
        self._opened().shutdown()
        return b""

    def close(self) -> None:
        """Close what is open; also of a guest that never came up."""
        with contextlib.suppress(OSError):
            self.listener.close()
        if self._session is not None:
            self._session.close()

    def _take_up(self, former: Session) -> None:
        stream = self.accept(self.listener, limit_s=self.limit_s)
        if self._session is not None:
            self._session.close()
        self._session = Session.restored(stream, former)

    def _opened(self) -> Session:
        if self._expected is not None:
            former, self._expected = self._expected, None
            self._take_up(former)
        return self._known()

    def _known(self) -> Session:
        if self._session is None:
            raise PlatformError("the guest has not come up")
        return self._session
