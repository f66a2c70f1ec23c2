"""The results of a session's requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tare.errors import SessionError


class Refused(SessionError):  # noqa: N818 (it names what happened, as SessionTimeout does)
    """The agent cannot do what was asked; the session goes on. ``code`` is the protocol's name of the reason."""

    def __init__(self, what: str, code: str) -> None:
        super().__init__(what)
        self.code = code


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far the agent's monotonic clock is ahead of the host's, give or take ``uncertainty_ns``."""

    offset_ns: int
    uncertainty_ns: int
    at_ns: int = 0  # the host's instant, the middle of the exchange

    def to_agent(self, host_ns: int) -> int:
        """An instant of the host's clock on the agent's."""
        return host_ns + self.offset_ns

    def to_host(self, agent_ns: int) -> int:
        """An instant of the agent's clock on the host's."""
        return agent_ns - self.offset_ns


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended. Times are the agent's: by its monotonic clock, and by the kernel below it (rusage)."""

    code: int | None  # None when a signal ended it
    signal: int | None
    timed_out: bool  # the agent killed it for its time limit
    wall_ns: int  # from just before the start of the process until it was reaped
    spawn_ns: int  # from the request's arrival until the program ran: the agent's own overhead
    user_ns: int
    system_ns: int
    max_rss_bytes: int
    stdout_bytes: int  # produced, which may be more than was sent
    stderr_bytes: int
    truncated: bool  # more was produced than the output cap
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class PartResult:
    """Work of one part of a probe in one slice, in the part's own measure, and the wall time that it took."""

    work: int
    wall_ns: int


@dataclass(frozen=True, slots=True)
class ProbeSlice:
    """One turn as it was, on the agent's clock. A turn that came too late has no work and no length."""

    start_ns: int
    end_ns: int
    parts: Mapping[str, PartResult]


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe did; fewer slices than were planned when it was killed."""

    slices: tuple[ProbeSlice, ...]
    warmup_work: int
