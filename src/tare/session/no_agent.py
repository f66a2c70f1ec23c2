"""Session of an instance without an agent: it knows only if the instance is alive."""

from __future__ import annotations

import math
from typing import NoReturn

from tare.errors import HostError, SessionError
from tare.session import messages
from tare.session.byte_streams import ByteStream
from tare.session.requests import Pending
from tare.session.session import Session


class NoAgentSession(Session):
    """Session that refuses every request. The stream polls readable once the instance has ended, and never before."""

    def __init__(self, stream: ByteStream, name: str) -> None:
        self._name = name
        self._gone: SessionError | None = None
        super().__init__(stream)

    @property
    def dead(self) -> SessionError | None:
        """The reason why the instance is lost; None while it is alive."""
        if self._gone is None and self._poll.poll(0):
            self._gone = SessionError(f"{self._name} has ended")
        return self._gone

    @dead.setter
    def dead(self, error: SessionError | None) -> None:
        self._gone = error

    @property
    def hello(self) -> messages.Hello:
        """Raise `HostError`, because there is no agent to greet. Always raises."""
        raise self._refusal()

    def _ask(
        self,
        pending: Pending,  # noqa: ARG002 (no request is sent)
        message: messages.Message,  # noqa: ARG002
        deadline: float = math.inf,  # noqa: ARG002
    ) -> NoReturn:
        self._check_alive()
        raise self._refusal()

    def _refusal(self) -> HostError:
        return HostError(f"{self._name} is a black box: no agent runs inside")
