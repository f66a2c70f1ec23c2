"""The host side of the agent's protocol (docs/protocol.md): one session over one byte stream.

A sandbox's output may be hostile. Everything is bounded, and any violation of the protocol ends the session with one
clear error.
"""

from typing import TYPE_CHECKING

from tare import lazily

if TYPE_CHECKING:
    from tare.session.messages import MAX_SLICES
    from tare.session.no_agent import NoAgentSession
    from tare.session.requests import Execution, Probe
    from tare.session.results import ClockOffset, ExecResult, PartResult, ProbeResult, ProbeSlice, Refused
    from tare.session.session import Session
    from tare.session.streams import ByteStream, PipeStream, SocketStream

__all__ = [
    "MAX_SLICES",
    "ByteStream",
    "ClockOffset",
    "ExecResult",
    "Execution",
    "NoAgentSession",
    "PartResult",
    "PipeStream",
    "Probe",
    "ProbeResult",
    "ProbeSlice",
    "Refused",
    "Session",
    "SocketStream",
]

__getattr__ = lazily.exports(
    __name__,
    {
        "MAX_SLICES": "messages",
        "ByteStream": "streams",
        "ClockOffset": "results",
        "ExecResult": "results",
        "Execution": "requests",
        "NoAgentSession": "no_agent",
        "PartResult": "results",
        "PipeStream": "streams",
        "Probe": "requests",
        "ProbeResult": "results",
        "ProbeSlice": "results",
        "Refused": "results",
        "Session": "session",
        "SocketStream": "streams",
    },
)
