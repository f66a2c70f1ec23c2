"""The host side of the agent's protocol (docs/protocol.md): one session over one byte stream.

A sandbox's output may be hostile. Everything is bounded, and any violation of the protocol ends the session with one
clear error.
"""

from typing import TYPE_CHECKING

from tare import lazily

if TYPE_CHECKING:
    from tare.session.byte_streams import ByteStream, PipeStream, SocketStream
    from tare.session.messages import MAX_SLICES
    from tare.session.no_agent import NoAgentSession
    from tare.session.request_results import ClockOffset, ExecResult, PartResult, ProbeResult, ProbeSlice, Refused
    from tare.session.requests import Execution, Probe
    from tare.session.session import Session

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
        "ByteStream": "byte_streams",
        "ClockOffset": "request_results",
        "ExecResult": "request_results",
        "Execution": "requests",
        "NoAgentSession": "no_agent",
        "PartResult": "request_results",
        "PipeStream": "byte_streams",
        "Probe": "requests",
        "ProbeResult": "request_results",
        "ProbeSlice": "request_results",
        "Refused": "request_results",
        "Session": "session",
        "SocketStream": "byte_streams",
    },
)
