"""Results of a session's requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tare.errors import SessionError


class Refused(SessionError):  # noqa: N818 (it names what happened, as SessionTimeout does)
    """Refusal of a request by the agent; the session continues. ``code`` is the protocol's name of the reason."""

    def __init__(self, what: str, code: str) -> None:
        super().__init__(what)
        self.code = code


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Offset of the agent's monotonic clock from the host's, plus or minus ``uncertainty_ns``."""

    offset_ns: int
    uncertainty_ns: int
    at_ns: int = 0  # On the host's clock, the middle of the exchange.

    def to_agent(self, host_ns: int) -> int:
        """Convert a time of the host's clock to the agent's."""
        return host_ns + self.offset_ns

    def to_host(self, agent_ns: int) -> int:
        """Convert a time of the agent's clock to the host's."""
        return agent_ns - self.offset_ns


@dataclass(frozen=True, slots=True)
class ExecResult:
    """Exit status of a command. Times are the agent's: by its monotonic clock, and by the kernel below it (rusage)."""

    code: int | None  # None if a signal ended it.
    signal: int | None
    timed_out: bool  # The agent killed it at its time limit.
    wall_ns: int  # From just before the start of the process until it was reaped.
    spawn_ns: int  # From the request's arrival until the program ran: the agent's own overhead.
    user_ns: int
    system_ns: int
    max_rss_bytes: int
    stdout_bytes: int  # Produced, which may be more than was sent.
    stderr_bytes: int
    truncated: bool  # More was produced than the output cap.
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class PartResult:
    """Work of one part of a probe in one slice, in the part's own measure, and its wall time."""

    work: int
    wall_ns: int


@dataclass(frozen=True, slots=True)
class ProbeSlice:
    """One completed turn, on the agent's clock. A turn that came too late has no work and no length."""

    start_ns: int
    end_ns: int
    parts: Mapping[str, PartResult]


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Work of a probe; it has fewer slices than planned if it was killed."""

    slices: tuple[ProbeSlice, ...]
    warmup_work: int
